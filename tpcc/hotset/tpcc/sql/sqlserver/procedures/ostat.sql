-- Order-status (clause 2.6.2): a customer's balance and latest order. The lines are read and
-- summed up; they are not sent back one by one.
CREATE PROCEDURE hotset_tpcc.ostat @w_id int, @d_id int, @c_id int, @c_last varchar(16)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @c_first varchar(16), @c_balance decimal(18, 2), @o_id int, @carrier_id int,
            @entry_d datetime2(3), @lines int, @amount decimal(12, 2);

    BEGIN TRANSACTION;
    IF @c_id IS NULL
        -- The one in the middle, by first name, of those with that last name.
        SELECT @c_id = c_id
          FROM (SELECT c_id, row_number() OVER (ORDER BY c_first) AS place,
                       count(*) OVER () AS namesakes
                  FROM hotset_tpcc.customer
                 WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_last = @c_last) AS listed
         WHERE place = (namesakes + 1) / 2;

    SELECT @c_first = c_first, @c_last = c_last, @c_balance = c_balance
      FROM hotset_tpcc.customer WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_id = @c_id;

    SELECT TOP (1) @o_id = o_id, @carrier_id = o_carrier_id, @entry_d = o_entry_d
      FROM hotset_tpcc.orders WHERE o_w_id = @w_id AND o_d_id = @d_id AND o_c_id = @c_id
     ORDER BY o_id DESC;

    SELECT @lines = count(*), @amount = sum(ol_amount)
      FROM hotset_tpcc.order_line WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id = @o_id;
    COMMIT TRANSACTION;
    SELECT @c_id, @c_first, @c_last, @c_balance, @o_id, @carrier_id, @entry_d, @lines, @amount;
END;

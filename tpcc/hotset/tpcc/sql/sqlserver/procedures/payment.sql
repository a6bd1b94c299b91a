-- Payment (clause 2.5.2), of a customer by number, or by last name when @c_id is null.
--
-- The customer first and the warehouse last: the rows that all users share stay locked for the
-- shortest time, and never while a customer is read from disk.
CREATE PROCEDURE hotset_tpcc.payment
    @w_id int, @d_id int, @c_w_id int, @c_d_id int,
    @c_id int, @c_last varchar(16), @amount decimal(6, 2)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @c_first varchar(16), @c_credit char(2), @c_discount decimal(4, 4),
            @c_balance decimal(18, 2), @w_name varchar(10), @d_name varchar(10);

    BEGIN TRANSACTION;
    IF @c_id IS NULL
        -- The one in the middle, by first name, of those with that last name.
        SELECT @c_id = c_id
          FROM (SELECT c_id, row_number() OVER (ORDER BY c_first) AS place,
                       count(*) OVER () AS namesakes
                  FROM hotset_tpcc.customer
                 WHERE c_w_id = @c_w_id AND c_d_id = @c_d_id AND c_last = @c_last) AS listed
         WHERE place = (namesakes + 1) / 2;

    UPDATE hotset_tpcc.customer
       SET c_balance = c_balance - @amount,
           c_ytd_payment = c_ytd_payment + @amount,
           c_payment_cnt = c_payment_cnt + 1,
           c_data = CASE WHEN c_credit = 'BC'
                         THEN left(concat(c_id, ' ', @c_d_id, ' ', @c_w_id, ' ', @d_id, ' ',
                                          @w_id, ' ', @amount, ' ', c_data), 500)
                         ELSE c_data END
     WHERE c_w_id = @c_w_id AND c_d_id = @c_d_id AND c_id = @c_id;
    SELECT @c_first = c_first, @c_last = c_last, @c_credit = c_credit,
           @c_discount = c_discount, @c_balance = c_balance
      FROM hotset_tpcc.customer WHERE c_w_id = @c_w_id AND c_d_id = @c_d_id AND c_id = @c_id;

    UPDATE hotset_tpcc.district SET d_ytd = d_ytd + @amount WHERE d_w_id = @w_id AND d_id = @d_id;
    SELECT @d_name = d_name FROM hotset_tpcc.district WHERE d_w_id = @w_id AND d_id = @d_id;
    UPDATE hotset_tpcc.warehouse SET w_ytd = w_ytd + @amount WHERE w_id = @w_id;
    SELECT @w_name = w_name FROM hotset_tpcc.warehouse WHERE w_id = @w_id;

    INSERT INTO hotset_tpcc.history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (@c_id, @c_d_id, @c_w_id, @d_id, @w_id, getdate(), @amount,
            concat(@w_name, '    ', @d_name));
    COMMIT TRANSACTION;
    SELECT @c_id, @c_first, @c_last, @c_credit, @c_discount, @c_balance, @w_name, @d_name;
END;

-- Delivery (clause 2.7.4): the oldest undelivered order of each of the ten districts, in one
-- transaction.
--
-- Two deliveries for the same warehouse wait for each other (no READPAST): one that overtook would
-- leave a gap in NEW-ORDER if the other rolled back, against clause 2.7.4.2 and condition 3. Where
-- a server ignores the hints, the second finds the row gone, and its row count of 0 says so: an
-- order is delivered by whoever deleted its new-order row, and by no one else.
CREATE PROCEDURE hotset_tpcc.delivery @w_id int, @carrier_id int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @d_id int, @o_id int, @c_id int, @amount decimal(12, 2), @now datetime2(3),
            @delivered int;
    SET @d_id = 1;
    SET @delivered = 0;
    SET @now = getdate();

    BEGIN TRANSACTION;
    WHILE @d_id <= 10
    BEGIN
        SET @o_id = NULL;
        SELECT TOP (1) @o_id = no_o_id
          FROM hotset_tpcc.new_order WITH (ROWLOCK, UPDLOCK)
         WHERE no_w_id = @w_id AND no_d_id = @d_id
         ORDER BY no_o_id;
        DELETE FROM hotset_tpcc.new_order WHERE no_w_id = @w_id AND no_d_id = @d_id AND no_o_id = @o_id;
        IF @@ROWCOUNT = 1
        BEGIN
            UPDATE hotset_tpcc.orders SET o_carrier_id = @carrier_id
             WHERE o_w_id = @w_id AND o_d_id = @d_id AND o_id = @o_id;
            SELECT @c_id = o_c_id
              FROM hotset_tpcc.orders WHERE o_w_id = @w_id AND o_d_id = @d_id AND o_id = @o_id;
            UPDATE hotset_tpcc.order_line SET ol_delivery_d = @now
             WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id = @o_id;
            SELECT @amount = sum(ol_amount)
              FROM hotset_tpcc.order_line WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id = @o_id;
            UPDATE hotset_tpcc.customer SET c_balance = c_balance + @amount, c_delivery_cnt = c_delivery_cnt + 1
             WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_id = @c_id;
            SET @delivered = @delivered + 1;
        END;
        SET @d_id = @d_id + 1;
    END;
    COMMIT TRANSACTION;
    SELECT @delivered;
END;

-- New-order (clause 2.4.2). Three strings carry the items, ten digits each, ordered by supplying
-- warehouse and item, each pair once. Cutting a string is the cheapest way for a list into a
-- procedure that every version since 2016 and Babelfish have: STRING_SPLIT gives no order before
-- 2022, OPENJSON parses three times, table-valued parameters cost a round trip to describe.
--
-- The customer and the warehouse are read before anything is locked: payment locks a customer and
-- then the district, so a new-order that held the district and then read the customer would wait
-- in a ring. After that UPDATE comes before SELECT: what is read is already ours, with or without
-- lock hints. An item that does not exist joins with nothing, so the count of lines falls short,
-- and the whole order rolls back after its full work, as clause 2.4.2.3 wants.
-- Quantities, prices and texts of the single lines are not sent back to the terminal, and
-- S_DATA and I_DATA are not compared ("brand-generic"): as in other stored-procedure kits.
CREATE PROCEDURE hotset_tpcc.neword
    @w_id int, @d_id int, @c_id int, @all_local int,
    @items varchar(200), @supplies varchar(200), @quantities varchar(200)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @o_id int, @total decimal(12, 2), @lines int, @count int,
            @c_last varchar(16), @c_credit char(2), @c_discount decimal(4, 4),
            @w_tax decimal(4, 4), @d_tax decimal(4, 4);
    SET @count = len(@items) / 10;

    BEGIN TRANSACTION;
    SELECT @c_last = c_last, @c_credit = c_credit, @c_discount = c_discount
      FROM hotset_tpcc.customer WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_id = @c_id;
    SELECT @w_tax = w_tax FROM hotset_tpcc.warehouse WHERE w_id = @w_id;

    UPDATE hotset_tpcc.district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = @w_id AND d_id = @d_id;
    SELECT @o_id = d_next_o_id - 1, @d_tax = d_tax
      FROM hotset_tpcc.district WHERE d_w_id = @w_id AND d_id = @d_id;

    INSERT INTO hotset_tpcc.orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt, o_all_local, o_entry_d)
    VALUES (@w_id, @d_id, @o_id, @c_id, @count, @all_local, getdate());
    INSERT INTO hotset_tpcc.new_order (no_w_id, no_d_id, no_o_id) VALUES (@w_id, @d_id, @o_id);

    UPDATE hotset_tpcc.stock
       SET s_quantity = CASE WHEN s_quantity >= want.quantity + 10
                             THEN s_quantity - want.quantity
                             ELSE s_quantity - want.quantity + 91 END,
           s_ytd = s_ytd + want.quantity,
           s_order_cnt = s_order_cnt + 1,
           s_remote_cnt = s_remote_cnt + CASE WHEN want.supply <> @w_id THEN 1 ELSE 0 END
      FROM hotset_tpcc.stock
      JOIN (SELECT CAST(substring(@items, 10 * number - 9, 10) AS int) AS item,
                   CAST(substring(@supplies, 10 * number - 9, 10) AS int) AS supply,
                   CAST(substring(@quantities, 10 * number - 9, 10) AS int) AS quantity
              FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13),
                           (14), (15)) AS numbers (number)
             WHERE number <= @count) AS want
        ON s_w_id = want.supply AND s_i_id = want.item;

    INSERT INTO hotset_tpcc.order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id,
                            ol_quantity, ol_amount, ol_dist_info)
    SELECT @w_id, @d_id, @o_id, want.number, want.item, want.supply, want.quantity,
           want.quantity * i_price,
           CASE @d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                      WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                      WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                      ELSE s_dist_10 END
      FROM (SELECT number,
                   CAST(substring(@items, 10 * number - 9, 10) AS int) AS item,
                   CAST(substring(@supplies, 10 * number - 9, 10) AS int) AS supply,
                   CAST(substring(@quantities, 10 * number - 9, 10) AS int) AS quantity
              FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13),
                           (14), (15)) AS numbers (number)
             WHERE number <= @count) AS want
      JOIN hotset_tpcc.item ON i_id = want.item
      JOIN hotset_tpcc.stock ON s_w_id = want.supply AND s_i_id = want.item;
    SET @lines = @@ROWCOUNT;

    IF @lines < @count
    BEGIN
        ROLLBACK TRANSACTION;
        THROW 50241, 'item number is not valid', 1;
    END;
    SELECT @total = sum(ol_amount) FROM hotset_tpcc.order_line
     WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id = @o_id;
    COMMIT TRANSACTION;
    SELECT @o_id, @total * (1 - @c_discount) * (1 + @w_tax + @d_tax), @c_last, @c_credit,
           @c_discount, @w_tax, @d_tax;
END;

-- New-order (clause 2.4.2). Three arrays carry the items, ordered by supplying warehouse and
-- item, each pair once: all users then lock stock rows in the same order and cannot deadlock.
--
-- All lines are one statement: stock is updated (without reading it first), and what the update
-- returns becomes the order lines. An item that does not exist joins with nothing, so the count
-- falls short, and the whole order rolls back after its full work, as clause 2.4.2.3 wants.
-- Quantities, prices and texts of the single lines are not sent back to the terminal, and
-- S_DATA and I_DATA are not compared ("brand-generic"): as in other stored-procedure kits.
CREATE FUNCTION hotset_tpcc.neword(
    p_w_id integer, p_d_id integer, p_c_id integer, p_all_local integer,
    p_items integer[], p_supply integer[], p_quantities integer[],
    OUT r_o_id integer, OUT r_total numeric, OUT r_c_last varchar, OUT r_c_credit char,
    OUT r_c_discount numeric, OUT r_w_tax numeric, OUT r_d_tax numeric
) LANGUAGE plpgsql AS $$
DECLARE
    v_lines integer;
BEGIN
    UPDATE hotset_tpcc.district SET d_next_o_id = d_next_o_id + 1
     WHERE d_w_id = p_w_id AND d_id = p_d_id
    RETURNING d_next_o_id - 1, d_tax INTO r_o_id, r_d_tax;

    WITH picked AS (
        UPDATE hotset_tpcc.stock
           SET s_quantity = CASE WHEN s_quantity >= want.quantity + 10
                                 THEN s_quantity - want.quantity
                                 ELSE s_quantity - want.quantity + 91 END,
               s_ytd = s_ytd + want.quantity,
               s_order_cnt = s_order_cnt + 1,
               s_remote_cnt = s_remote_cnt + (want.supply <> p_w_id)::integer
          FROM unnest(p_items, p_supply, p_quantities)
                   WITH ORDINALITY AS want (item, supply, quantity, number)
          JOIN hotset_tpcc.item ON i_id = want.item
         WHERE s_w_id = want.supply AND s_i_id = want.item
        RETURNING want.item, want.supply, want.quantity, want.number,
                  want.quantity * i_price AS amount,
                  CASE p_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                              WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                              WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                              ELSE s_dist_10 END AS dist_info
    ), lines AS (
        INSERT INTO hotset_tpcc.order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id,
                                ol_quantity, ol_amount, ol_dist_info)
        SELECT p_w_id, p_d_id, r_o_id, number, item, supply, quantity, amount, dist_info
          FROM picked
        RETURNING ol_amount
    )
    SELECT count(*), sum(ol_amount) INTO v_lines, r_total FROM lines;

    INSERT INTO hotset_tpcc.orders (o_w_id, o_d_id, o_id, o_c_id, o_ol_cnt, o_all_local, o_entry_d)
    VALUES (p_w_id, p_d_id, r_o_id, p_c_id, cardinality(p_items), p_all_local, localtimestamp);
    INSERT INTO hotset_tpcc.new_order (no_w_id, no_d_id, no_o_id) VALUES (p_w_id, p_d_id, r_o_id);

    SELECT c_last, c_credit, c_discount, w_tax
      INTO r_c_last, r_c_credit, r_c_discount, r_w_tax
      FROM hotset_tpcc.customer, hotset_tpcc.warehouse
     WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id AND w_id = p_w_id;

    IF v_lines < cardinality(p_items) THEN
        RAISE EXCEPTION 'item number is not valid' USING ERRCODE = 'HS241';
    END IF;
    r_total := r_total * (1 - r_c_discount) * (1 + r_w_tax + r_d_tax);
END $$;

-- Stock-level (clause 2.8.2): how many items of a district's last 20 orders are low in stock.
--
-- The items go into an array, which stock is then searched for by key in one index scan. As a join,
-- the planner may prefer to scan the stock of all warehouses (it does with the default cost of
-- random reads); and about 200 separate look-ups take a quarter more CPU.
CREATE FUNCTION hotset_tpcc.slev(
    p_w_id integer, p_d_id integer, p_threshold integer, OUT r_low integer
) LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    SELECT d_next_o_id INTO v_next FROM hotset_tpcc.district WHERE d_w_id = p_w_id AND d_id = p_d_id;

    -- A stock row counts once, however many lines ask for its item.
    SELECT count(*) INTO r_low
      FROM hotset_tpcc.stock
     WHERE s_w_id = p_w_id AND s_quantity < p_threshold
       AND s_i_id = ANY (ARRAY(
           SELECT ol_i_id FROM hotset_tpcc.order_line
            WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id
              AND ol_o_id >= v_next - 20 AND ol_o_id < v_next));
END $$;

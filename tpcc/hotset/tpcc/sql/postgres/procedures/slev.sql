-- Stock-level (clause 2.8.2): how many items of a district's last 20 orders are low in stock.
--
-- The inner query's OFFSET 0 keeps it a look-up by key per item, whatever the planner's settings:
-- with the default cost of random reads it may prefer to scan the stock of all warehouses.
CREATE OR REPLACE FUNCTION slev(
    p_w_id integer, p_d_id integer, p_threshold integer, OUT r_low integer
) LANGUAGE plpgsql AS $$
DECLARE
    v_next integer;
BEGIN
    SELECT d_next_o_id INTO v_next FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;

    SELECT count(*) INTO r_low
      FROM (SELECT DISTINCT ol_i_id FROM order_line
             WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id
               AND ol_o_id >= v_next - 20 AND ol_o_id < v_next) AS recent
     CROSS JOIN LATERAL (
           SELECT s_quantity FROM stock
            WHERE s_w_id = p_w_id AND s_i_id = recent.ol_i_id OFFSET 0) AS level
     WHERE level.s_quantity < p_threshold;
END $$;

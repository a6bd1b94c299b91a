-- Delivery (clause 2.7.4): the oldest undelivered order of each of the ten districts, all in one
-- statement and one transaction.
--
-- Two deliveries for the same warehouse wait for each other (no SKIP LOCKED): one that overtook
-- would leave a gap in NEW-ORDER if the other rolled back, against clause 2.7.4.2 and condition 3.
-- Who has waited finds the order gone and takes the next; all take the districts in one order.
CREATE FUNCTION hotset_tpcc.delivery(
    p_w_id integer, p_carrier_id integer, OUT r_delivered integer
) LANGUAGE plpgsql AS $$
BEGIN
    WITH oldest (in_district, number) AS MATERIALIZED (
        SELECT district.no, waiting.no_o_id
          FROM generate_series(1, 10) AS district (no)
         CROSS JOIN LATERAL (
               SELECT no_o_id FROM hotset_tpcc.new_order
                WHERE no_w_id = p_w_id AND no_d_id = district.no
                ORDER BY no_o_id LIMIT 1 FOR UPDATE) AS waiting
    ), gone AS (
        DELETE FROM hotset_tpcc.new_order USING oldest
         WHERE no_w_id = p_w_id AND no_d_id = oldest.in_district AND no_o_id = oldest.number
    ), delivered AS (
        UPDATE hotset_tpcc.orders SET o_carrier_id = p_carrier_id FROM oldest
         WHERE o_w_id = p_w_id AND o_d_id = oldest.in_district AND o_id = oldest.number
        RETURNING o_d_id, o_c_id
    ), lines AS (
        UPDATE hotset_tpcc.order_line SET ol_delivery_d = localtimestamp FROM oldest
         WHERE ol_w_id = p_w_id AND ol_d_id = oldest.in_district AND ol_o_id = oldest.number
        RETURNING ol_d_id, ol_amount
    ), amounts AS (
        SELECT ol_d_id, sum(ol_amount) AS amount FROM lines GROUP BY ol_d_id
    )
    UPDATE hotset_tpcc.customer
       SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
      FROM delivered JOIN amounts ON ol_d_id = o_d_id
     WHERE c_w_id = p_w_id AND c_d_id = o_d_id AND c_id = o_c_id;
    GET DIAGNOSTICS r_delivered = ROW_COUNT;
END $$;

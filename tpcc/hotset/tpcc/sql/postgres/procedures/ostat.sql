-- Order-status (clause 2.6.2): a customer's balance and latest order. The lines are read and
-- summed up; they are not sent back one by one.
CREATE FUNCTION hotset_tpcc.ostat(
    p_w_id integer, p_d_id integer, p_c_id integer, p_c_last varchar,
    OUT r_c_id integer, OUT r_c_first varchar, OUT r_c_last varchar, OUT r_c_balance numeric,
    OUT r_o_id integer, OUT r_carrier_id integer, OUT r_entry_d timestamp,
    OUT r_lines integer, OUT r_amount numeric
) LANGUAGE plpgsql AS $$
BEGIN
    IF p_c_id IS NULL THEN
        -- The one in the middle, by first name, of those with that last name.
        SELECT ids[(cardinality(ids) + 1) / 2] INTO p_c_id
          FROM (SELECT array_agg(named.c_id) AS ids
                  FROM (SELECT c_id FROM hotset_tpcc.customer
                         WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last
                         ORDER BY c_first) AS named) AS listed;
    END IF;

    SELECT c_id, c_first, c_last, c_balance INTO r_c_id, r_c_first, r_c_last, r_c_balance
      FROM hotset_tpcc.customer WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;

    SELECT o_id, o_carrier_id, o_entry_d INTO r_o_id, r_carrier_id, r_entry_d
      FROM hotset_tpcc.orders WHERE o_w_id = p_w_id AND o_d_id = p_d_id AND o_c_id = p_c_id
     ORDER BY o_id DESC LIMIT 1;

    SELECT count(*), sum(ol_amount) INTO r_lines, r_amount
      FROM hotset_tpcc.order_line WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id = r_o_id;
END $$;

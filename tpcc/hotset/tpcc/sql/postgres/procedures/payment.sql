-- Payment (clause 2.5.2), of a customer by number, or by last name when p_c_id is null.
--
-- The customer first and the warehouse last: the rows that all users share stay locked for the
-- shortest time, and never while a customer is read from disk. New-order takes district then
-- stock, delivery takes customers only, so no two transactions wait for each other in a ring.
CREATE FUNCTION hotset_tpcc.payment(
    p_w_id integer, p_d_id integer, p_c_w_id integer, p_c_d_id integer,
    p_c_id integer, p_c_last varchar, p_amount numeric,
    OUT r_c_id integer, OUT r_c_first varchar, OUT r_c_last varchar, OUT r_c_credit char,
    OUT r_c_discount numeric, OUT r_c_balance numeric, OUT r_w_name varchar, OUT r_d_name varchar
) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE hotset_tpcc.customer
       SET c_balance = c_balance - p_amount,
           c_ytd_payment = c_ytd_payment + p_amount,
           c_payment_cnt = c_payment_cnt + 1,
           c_data = CASE WHEN c_credit = 'BC'
                         THEN left(concat_ws(' ', c_id, p_c_d_id, p_c_w_id, p_d_id, p_w_id,
                                             p_amount, c_data), 500)
                         ELSE c_data END
     WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id
       AND c_id = coalesce(p_c_id, (
               -- The one in the middle, by first name, of those with that last name.
               SELECT ids[(cardinality(ids) + 1) / 2]
                 FROM (SELECT array_agg(named.c_id) AS ids
                         FROM (SELECT c_id FROM hotset_tpcc.customer
                                WHERE c_w_id = p_c_w_id AND c_d_id = p_c_d_id AND c_last = p_c_last
                                ORDER BY c_first) AS named) AS listed))
    RETURNING c_id, c_first, c_last, c_credit, c_discount, c_balance
         INTO r_c_id, r_c_first, r_c_last, r_c_credit, r_c_discount, r_c_balance;

    UPDATE hotset_tpcc.district SET d_ytd = d_ytd + p_amount
     WHERE d_w_id = p_w_id AND d_id = p_d_id RETURNING d_name INTO r_d_name;
    UPDATE hotset_tpcc.warehouse SET w_ytd = w_ytd + p_amount
     WHERE w_id = p_w_id RETURNING w_name INTO r_w_name;

    INSERT INTO hotset_tpcc.history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (r_c_id, p_c_d_id, p_c_w_id, p_d_id, p_w_id, localtimestamp, p_amount,
            r_w_name || '    ' || r_d_name);
END $$;

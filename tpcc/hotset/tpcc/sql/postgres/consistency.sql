-- The twelve consistency conditions of clause 3.3.2, one batch each, in order. Each query lists
-- what violates its condition (key columns first) and nothing in a consistent database.

-- 1: W_YTD = sum(D_YTD)
SELECT w_id, w_ytd, sum(d_ytd)
  FROM hotset_tpcc.warehouse LEFT JOIN hotset_tpcc.district ON d_w_id = w_id
 GROUP BY w_id, w_ytd
HAVING w_ytd IS DISTINCT FROM sum(d_ytd)
-- GO
-- 2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID), the latter where a district has new-orders
SELECT d_w_id, d_id, d_next_o_id, o.last, n.last
  FROM hotset_tpcc.district
  LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM hotset_tpcc.orders GROUP BY o_w_id, o_d_id) AS o
    ON o_w_id = d_w_id AND o_d_id = d_id
  LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last
               FROM hotset_tpcc.new_order GROUP BY no_w_id, no_d_id) AS n
    ON no_w_id = d_w_id AND no_d_id = d_id
 WHERE d_next_o_id - 1 IS DISTINCT FROM o.last OR d_next_o_id - 1 <> n.last
-- GO
-- 3: max(NO_O_ID) - min(NO_O_ID) + 1 = new-orders of the district
SELECT no_w_id, no_d_id, min(no_o_id), max(no_o_id), count(*)
  FROM hotset_tpcc.new_order
 GROUP BY no_w_id, no_d_id
HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)
-- GO
-- 4: sum(O_OL_CNT) = order lines of the district
SELECT coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id), o.wanted, l.found
  FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS wanted FROM hotset_tpcc.orders GROUP BY o_w_id, o_d_id) AS o
  FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found
               FROM hotset_tpcc.order_line GROUP BY ol_w_id, ol_d_id) AS l
    ON ol_w_id = o_w_id AND ol_d_id = o_d_id
 WHERE o.wanted IS DISTINCT FROM l.found
-- GO
-- 5: O_CARRIER_ID is null if and only if the order is in NEW-ORDER
SELECT coalesce(o_w_id, no_w_id), coalesce(o_d_id, no_d_id), coalesce(o_id, no_o_id), o_carrier_id
  FROM hotset_tpcc.orders
  FULL JOIN hotset_tpcc.new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
 WHERE o_w_id IS NULL OR (o_carrier_id IS NULL) <> (no_w_id IS NOT NULL)
-- GO
-- 6: O_OL_CNT = order lines of the order
SELECT coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id), coalesce(o_id, ol_o_id), o_ol_cnt, found
  FROM hotset_tpcc.orders
  FULL JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found
               FROM hotset_tpcc.order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
    ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
 WHERE o_ol_cnt IS DISTINCT FROM found
-- GO
-- 7: OL_DELIVERY_D is null if and only if the order's O_CARRIER_ID is
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id
  FROM hotset_tpcc.order_line
  LEFT JOIN hotset_tpcc.orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
 WHERE o_w_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)
-- GO
-- 8: W_YTD = sum(H_AMOUNT)
SELECT w_id, w_ytd, sum(h_amount)
  FROM hotset_tpcc.warehouse LEFT JOIN hotset_tpcc.history ON h_w_id = w_id
 GROUP BY w_id, w_ytd
HAVING w_ytd IS DISTINCT FROM sum(h_amount)
-- GO
-- 9: D_YTD = sum(H_AMOUNT)
SELECT d_w_id, d_id, d_ytd, sum(h_amount)
  FROM hotset_tpcc.district LEFT JOIN hotset_tpcc.history ON h_w_id = d_w_id AND h_d_id = d_id
 GROUP BY d_w_id, d_id, d_ytd
HAVING d_ytd IS DISTINCT FROM sum(h_amount)
-- GO
-- 10: C_BALANCE = sum(OL_AMOUNT) of the customer's delivered lines - sum(H_AMOUNT)
SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid
  FROM hotset_tpcc.customer
  LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered
               FROM hotset_tpcc.orders JOIN hotset_tpcc.order_line
                 ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
              WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS l
    ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
  LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid
               FROM hotset_tpcc.history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h
    ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
 WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)
-- GO
-- 11: orders - new-orders = 2100 + sum(C_DELIVERY_CNT)
-- The specification says 2100, which holds for the initial population only; each delivery
-- adds one, and counts it at its customer.
SELECT d_w_id, d_id, placed, waiting, delivered
  FROM hotset_tpcc.district
  LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS placed FROM hotset_tpcc.orders GROUP BY o_w_id, o_d_id) AS o
    ON o_w_id = d_w_id AND o_d_id = d_id
  LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS waiting
               FROM hotset_tpcc.new_order GROUP BY no_w_id, no_d_id) AS n
    ON no_w_id = d_w_id AND no_d_id = d_id
  LEFT JOIN (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS delivered
               FROM hotset_tpcc.customer GROUP BY c_w_id, c_d_id) AS c
    ON c_w_id = d_w_id AND c_d_id = d_id
 WHERE coalesce(placed, 0) - coalesce(waiting, 0) <> 2100 + coalesce(delivered, 0)
-- GO
-- 12: C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of the customer's delivered lines
SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered
  FROM hotset_tpcc.customer
  LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered
               FROM hotset_tpcc.orders JOIN hotset_tpcc.order_line
                 ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
              WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS l
    ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
 WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0)

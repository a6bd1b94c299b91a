-- stock-level: items low in stock
-- The statements of the procedures that the planner has a choice for, as EXPLAIN can be asked about
-- them: a plan that turns within a run shows here. First line: kind of transaction, and what it does.
PREPARE hotset_stock_level (integer, integer, integer, integer) AS
SELECT count(*) FROM hotset_tpcc.stock
 WHERE s_w_id = $1 AND s_quantity < $3
   AND s_i_id = ANY (ARRAY(
       SELECT ol_i_id FROM hotset_tpcc.order_line
        WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $4 - 20 AND ol_o_id < $4))
-- GO
-- order-status: a customer's latest order
PREPARE hotset_latest_order (integer, integer, integer) AS
SELECT o_id, o_carrier_id, o_entry_d FROM hotset_tpcc.orders
 WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3
 ORDER BY o_id DESC LIMIT 1
-- GO
-- order-status: customers by last name
PREPARE hotset_by_name (integer, integer, varchar) AS
SELECT c_id FROM hotset_tpcc.customer
 WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first
-- GO
-- order-status: an order's lines
PREPARE hotset_order_lines (integer, integer, integer) AS
SELECT count(*), sum(ol_amount) FROM hotset_tpcc.order_line
 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3
-- GO
-- delivery: the oldest new order
PREPARE hotset_oldest (integer, integer) AS
SELECT no_o_id FROM hotset_tpcc.new_order
 WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE
-- GO
-- payment: the customer
PREPARE hotset_customer (integer, integer, integer, numeric) AS
UPDATE hotset_tpcc.customer SET c_balance = c_balance - $4
 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3
-- GO
-- new-order: stock and items
PREPARE hotset_stock (integer[], integer[], integer[]) AS
UPDATE hotset_tpcc.stock SET s_ytd = s_ytd + want.quantity
  FROM unnest($1, $2, $3) AS want (item, supply, quantity)
  JOIN hotset_tpcc.item ON i_id = want.item
 WHERE s_w_id = want.supply AND s_i_id = want.item

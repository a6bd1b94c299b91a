-- Rows of the nine tables.
SELECT 'item', count_big(*) FROM item
UNION ALL SELECT 'warehouse', count_big(*) FROM warehouse
UNION ALL SELECT 'district', count_big(*) FROM district
UNION ALL SELECT 'customer', count_big(*) FROM customer
UNION ALL SELECT 'history', count_big(*) FROM history
UNION ALL SELECT 'orders', count_big(*) FROM orders
UNION ALL SELECT 'new_order', count_big(*) FROM new_order
UNION ALL SELECT 'order_line', count_big(*) FROM order_line
UNION ALL SELECT 'stock', count_big(*) FROM stock

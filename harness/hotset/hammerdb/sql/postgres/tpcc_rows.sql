-- Rows of the nine tables.
SELECT 'item', count(*) FROM item
UNION ALL SELECT 'warehouse', count(*) FROM warehouse
UNION ALL SELECT 'district', count(*) FROM district
UNION ALL SELECT 'customer', count(*) FROM customer
UNION ALL SELECT 'history', count(*) FROM history
UNION ALL SELECT 'orders', count(*) FROM orders
UNION ALL SELECT 'new_order', count(*) FROM new_order
UNION ALL SELECT 'order_line', count(*) FROM order_line
UNION ALL SELECT 'stock', count(*) FROM stock

-- Rows of the eight tables.
SELECT 'region', count_big(*) FROM region
UNION ALL SELECT 'nation', count_big(*) FROM nation
UNION ALL SELECT 'supplier', count_big(*) FROM supplier
UNION ALL SELECT 'customer', count_big(*) FROM customer
UNION ALL SELECT 'part', count_big(*) FROM part
UNION ALL SELECT 'partsupp', count_big(*) FROM partsupp
UNION ALL SELECT 'orders', count_big(*) FROM orders
UNION ALL SELECT 'lineitem', count_big(*) FROM lineitem

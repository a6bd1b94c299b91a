-- Rows whose foreign key (clause 1.4.2.3) finds nothing, whether or not the server enforces it.
SELECT 'lineitem -> orders', count(*) FROM lineitem
WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_orderkey = l_orderkey)
UNION ALL
SELECT 'lineitem -> partsupp', count(*) FROM lineitem
WHERE NOT EXISTS (SELECT 1 FROM partsupp WHERE ps_partkey = l_partkey AND ps_suppkey = l_suppkey)
UNION ALL
SELECT 'orders -> customer', count(*) FROM orders
WHERE NOT EXISTS (SELECT 1 FROM customer WHERE c_custkey = o_custkey)
UNION ALL
SELECT 'partsupp -> part', count(*) FROM partsupp
WHERE NOT EXISTS (SELECT 1 FROM part WHERE p_partkey = ps_partkey)
UNION ALL
SELECT 'partsupp -> supplier', count(*) FROM partsupp
WHERE NOT EXISTS (SELECT 1 FROM supplier WHERE s_suppkey = ps_suppkey)
UNION ALL
SELECT 'customer -> nation', count(*) FROM customer
WHERE NOT EXISTS (SELECT 1 FROM nation WHERE n_nationkey = c_nationkey)
UNION ALL
SELECT 'supplier -> nation', count(*) FROM supplier
WHERE NOT EXISTS (SELECT 1 FROM nation WHERE n_nationkey = s_nationkey)
UNION ALL
SELECT 'nation -> region', count(*) FROM nation
WHERE NOT EXISTS (SELECT 1 FROM region WHERE r_regionkey = n_regionkey)

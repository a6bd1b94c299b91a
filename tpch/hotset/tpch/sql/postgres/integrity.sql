-- Rows whose foreign key (clause 1.4.2.3) finds nothing, whether or not the server enforces it.
SELECT 'lineitem -> orders', count(*) FROM hotset_tpch.lineitem
WHERE NOT EXISTS (SELECT 1 FROM hotset_tpch.orders WHERE o_orderkey = l_orderkey)
UNION ALL
SELECT 'lineitem -> partsupp', count(*) FROM hotset_tpch.lineitem
WHERE NOT EXISTS (SELECT 1 FROM hotset_tpch.partsupp WHERE ps_partkey = l_partkey AND ps_suppkey = l_suppkey)
UNION ALL
SELECT 'orders -> customer', count(*) FROM hotset_tpch.orders
WHERE NOT EXISTS (SELECT 1 FROM hotset_tpch.customer WHERE c_custkey = o_custkey)
UNION ALL
SELECT 'partsupp -> part', count(*) FROM hotset_tpch.partsupp
WHERE NOT EXISTS (SELECT 1 FROM hotset_tpch.part WHERE p_partkey = ps_partkey)
UNION ALL
SELECT 'partsupp -> supplier', count(*) FROM hotset_tpch.partsupp
WHERE NOT EXISTS (SELECT 1 FROM hotset_tpch.supplier WHERE s_suppkey = ps_suppkey)
UNION ALL
SELECT 'customer -> nation', count(*) FROM hotset_tpch.customer
WHERE NOT EXISTS (SELECT 1 FROM hotset_tpch.nation WHERE n_nationkey = c_nationkey)
UNION ALL
SELECT 'supplier -> nation', count(*) FROM hotset_tpch.supplier
WHERE NOT EXISTS (SELECT 1 FROM hotset_tpch.nation WHERE n_nationkey = s_nationkey)
UNION ALL
SELECT 'nation -> region', count(*) FROM hotset_tpch.nation
WHERE NOT EXISTS (SELECT 1 FROM hotset_tpch.region WHERE r_regionkey = n_regionkey)

SELECT 'region', count_big(*) FROM hotset_tpch.region
UNION ALL
SELECT 'nation', count_big(*) FROM hotset_tpch.nation
UNION ALL
SELECT 'supplier', count_big(*) FROM hotset_tpch.supplier
UNION ALL
SELECT 'customer', count_big(*) FROM hotset_tpch.customer
UNION ALL
SELECT 'part', count_big(*) FROM hotset_tpch.part
UNION ALL
SELECT 'partsupp', count_big(*) FROM hotset_tpch.partsupp
UNION ALL
SELECT 'orders', count_big(*) FROM hotset_tpch.orders
UNION ALL
SELECT 'lineitem', count_big(*) FROM hotset_tpch.lineitem

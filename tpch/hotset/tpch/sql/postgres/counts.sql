SELECT 'region', count(*) FROM hotset_tpch.region
UNION ALL
SELECT 'nation', count(*) FROM hotset_tpch.nation
UNION ALL
SELECT 'supplier', count(*) FROM hotset_tpch.supplier
UNION ALL
SELECT 'customer', count(*) FROM hotset_tpch.customer
UNION ALL
SELECT 'part', count(*) FROM hotset_tpch.part
UNION ALL
SELECT 'partsupp', count(*) FROM hotset_tpch.partsupp
UNION ALL
SELECT 'orders', count(*) FROM hotset_tpch.orders
UNION ALL
SELECT 'lineitem', count(*) FROM hotset_tpch.lineitem

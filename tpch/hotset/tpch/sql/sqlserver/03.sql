-- Q3, shipping priority (clause 2.4.3)
SELECT TOP 10
    l_orderkey,
    sum(l_extendedprice * (1 - l_discount)) AS revenue,
    o_orderdate,
    o_shippriority
FROM hotset_tpch.customer, hotset_tpch.orders, hotset_tpch.lineitem
WHERE
    c_mktsegment = ':1'
    AND c_custkey = o_custkey
    AND l_orderkey = o_orderkey
    AND o_orderdate < CAST(':2' AS date)
    AND l_shipdate > CAST(':2' AS date)
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate

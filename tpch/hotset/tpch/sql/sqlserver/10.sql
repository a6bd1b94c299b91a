-- Q10, returned item reporting (clause 2.4.10)
SELECT TOP 20
    c_custkey,
    c_name,
    sum(l_extendedprice * (1 - l_discount)) AS revenue,
    c_acctbal,
    n_name,
    c_address,
    c_phone,
    c_comment
FROM hotset_tpch.customer, hotset_tpch.orders, hotset_tpch.lineitem, hotset_tpch.nation
WHERE
    c_custkey = o_custkey
    AND l_orderkey = o_orderkey
    AND o_orderdate >= CAST(':1' AS date)
    AND o_orderdate < DATEADD(month, 3, CAST(':1' AS date))
    AND l_returnflag = 'R'
    AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
ORDER BY revenue DESC

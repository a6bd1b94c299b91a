-- Q5, local supplier volume (clause 2.4.5)
SELECT
    n_name,
    sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM hotset_tpch.customer, hotset_tpch.orders, hotset_tpch.lineitem, hotset_tpch.supplier, hotset_tpch.nation, hotset_tpch.region
WHERE
    c_custkey = o_custkey
    AND l_orderkey = o_orderkey
    AND l_suppkey = s_suppkey
    AND c_nationkey = s_nationkey
    AND s_nationkey = n_nationkey
    AND n_regionkey = r_regionkey
    AND r_name = ':1'
    AND o_orderdate >= date ':2'
    AND o_orderdate < date ':2' + interval '1' year
GROUP BY n_name
ORDER BY revenue DESC

-- Q18, large volume customer (clause 2.4.18)
SELECT
    c_name,
    c_custkey,
    o_orderkey,
    o_orderdate,
    o_totalprice,
    sum(l_quantity) AS sum_qty
FROM hotset_tpch.customer, hotset_tpch.orders, hotset_tpch.lineitem
WHERE
    o_orderkey IN (
        SELECT l_orderkey
        FROM hotset_tpch.lineitem
        GROUP BY l_orderkey
        HAVING sum(l_quantity) > :1
    )
    AND c_custkey = o_custkey
    AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate
LIMIT 100

-- Q4, order priority checking (clause 2.4.4)
SELECT
    o_orderpriority,
    count(*) AS order_count
FROM hotset_tpch.orders
WHERE
    o_orderdate >= CAST(':1' AS date)
    AND o_orderdate < DATEADD(month, 3, CAST(':1' AS date))
    AND EXISTS (
        SELECT 1
        FROM hotset_tpch.lineitem
        WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate
    )
GROUP BY o_orderpriority
ORDER BY o_orderpriority

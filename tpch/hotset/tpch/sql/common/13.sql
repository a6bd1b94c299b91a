-- Q13, customer distribution (clause 2.4.13)
SELECT
    c_count,
    count(*) AS custdist
FROM (
    SELECT c_custkey, count(o_orderkey) AS c_count
    FROM hotset_tpch.customer
    LEFT OUTER JOIN hotset_tpch.orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%:1%:2%'
    GROUP BY c_custkey
) AS c_orders
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC

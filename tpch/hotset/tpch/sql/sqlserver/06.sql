-- Q6, forecasting revenue change (clause 2.4.6)
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM hotset_tpch.lineitem
WHERE
    l_shipdate >= CAST(':1' AS date)
    AND l_shipdate < DATEADD(year, 1, CAST(':1' AS date))
    AND l_discount BETWEEN :2 - 0.01 AND :2 + 0.01
    AND l_quantity < :3

-- Q20, potential part promotion (clause 2.4.20)
SELECT s_name, s_address
FROM hotset_tpch.supplier, hotset_tpch.nation
WHERE
    s_suppkey IN (
        SELECT ps_suppkey
        FROM hotset_tpch.partsupp
        WHERE
            ps_partkey IN (SELECT p_partkey FROM hotset_tpch.part WHERE p_name LIKE ':1%')
            AND ps_availqty > (
                SELECT 0.5 * sum(l_quantity)
                FROM hotset_tpch.lineitem
                WHERE
                    l_partkey = ps_partkey
                    AND l_suppkey = ps_suppkey
                    AND l_shipdate >= CAST(':2' AS date)
                    AND l_shipdate < DATEADD(year, 1, CAST(':2' AS date))
            )
    )
    AND s_nationkey = n_nationkey
    AND n_name = ':3'
ORDER BY s_name

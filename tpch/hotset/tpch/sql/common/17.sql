-- Q17, small-quantity-order revenue (clause 2.4.17)
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly
FROM hotset_tpch.lineitem, hotset_tpch.part
WHERE
    p_partkey = l_partkey
    AND p_brand = ':1'
    AND p_container = ':2'
    AND l_quantity < (
        SELECT 0.2 * avg(l_quantity)
        FROM hotset_tpch.lineitem
        WHERE l_partkey = p_partkey
    )

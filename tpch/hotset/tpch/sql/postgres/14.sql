-- Q14, promotion effect (clause 2.4.14)
SELECT
    100.00 * sum(CASE
        WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0
    END) / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM hotset_tpch.lineitem, hotset_tpch.part
WHERE
    l_partkey = p_partkey
    AND l_shipdate >= date ':1'
    AND l_shipdate < date ':1' + interval '1' month

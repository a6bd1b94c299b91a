-- Q11, important stock identification (clause 2.4.11)
SELECT
    ps_partkey,
    sum(ps_supplycost * ps_availqty) AS value
FROM hotset_tpch.partsupp, hotset_tpch.supplier, hotset_tpch.nation
WHERE
    ps_suppkey = s_suppkey
    AND s_nationkey = n_nationkey
    AND n_name = ':1'
GROUP BY ps_partkey
HAVING sum(ps_supplycost * ps_availqty) > (
    SELECT sum(ps_supplycost * ps_availqty) * :2
    FROM hotset_tpch.partsupp, hotset_tpch.supplier, hotset_tpch.nation
    WHERE
        ps_suppkey = s_suppkey
        AND s_nationkey = n_nationkey
        AND n_name = ':1'
)
ORDER BY value DESC

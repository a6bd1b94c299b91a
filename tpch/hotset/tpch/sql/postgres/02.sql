-- Q2, minimum cost supplier (clause 2.4.2)
SELECT
    s_acctbal,
    s_name,
    n_name,
    p_partkey,
    p_mfgr,
    s_address,
    s_phone,
    s_comment
FROM hotset_tpch.part, hotset_tpch.supplier, hotset_tpch.partsupp, hotset_tpch.nation, hotset_tpch.region
WHERE
    p_partkey = ps_partkey
    AND s_suppkey = ps_suppkey
    AND p_size = :1
    AND p_type LIKE '%:2'
    AND s_nationkey = n_nationkey
    AND n_regionkey = r_regionkey
    AND r_name = ':3'
    AND ps_supplycost = (
        SELECT min(ps_supplycost)
        FROM hotset_tpch.partsupp, hotset_tpch.supplier, hotset_tpch.nation, hotset_tpch.region
        WHERE
            p_partkey = ps_partkey
            AND s_suppkey = ps_suppkey
            AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey
            AND r_name = ':3'
    )
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey
LIMIT 100

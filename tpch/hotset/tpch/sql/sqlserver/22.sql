-- Q22, global sales opportunity (clause 2.4.22)
SELECT
    cntrycode,
    count(*) AS numcust,
    sum(c_acctbal) AS totacctbal
FROM (
    SELECT SUBSTRING(c_phone, 1, 2) AS cntrycode, c_acctbal
    FROM hotset_tpch.customer
    WHERE
        SUBSTRING(c_phone, 1, 2) IN (':1', ':2', ':3', ':4', ':5', ':6', ':7')
        AND c_acctbal > (
            SELECT avg(c_acctbal)
            FROM hotset_tpch.customer
            WHERE
                c_acctbal > 0.00
                AND SUBSTRING(c_phone, 1, 2) IN (':1', ':2', ':3', ':4', ':5', ':6', ':7')
        )
        AND NOT EXISTS (SELECT 1 FROM hotset_tpch.orders WHERE o_custkey = c_custkey)
) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode

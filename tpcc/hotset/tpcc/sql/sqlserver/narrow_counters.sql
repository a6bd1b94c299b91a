-- 1 in a database that was loaded before its counters were widened, and orders since the load by
-- warehouse, the most of any.
SELECT (SELECT count(*) FROM sys.columns AS c JOIN sys.types AS t
            ON t.user_type_id = c.user_type_id
         WHERE c.object_id = OBJECT_ID('stock') AND c.name = 's_order_cnt'
           AND t.name = 'smallint'),
       (SELECT coalesce(max(orders), 0)
          FROM (SELECT sum(CAST(d_next_o_id - 3001 AS bigint)) AS orders
                  FROM district GROUP BY d_w_id) AS each_one)

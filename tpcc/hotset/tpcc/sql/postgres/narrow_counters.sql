-- 1 in a database that was loaded before its counters were widened, and orders since the load by
-- warehouse, the most of any.
SELECT (SELECT count(*) FROM pg_attribute
         WHERE attrelid = to_regclass('stock') AND attname = 's_order_cnt'
           AND atttypid = 'smallint'::regtype),
       (SELECT coalesce(max(orders), 0)
          FROM (SELECT sum(d_next_o_id - 3001) AS orders FROM district GROUP BY d_w_id) AS each)

-- The statements that Query Store has seen take the most time, those that differ in constants alone
-- together, with a plan of each.
WITH spent AS (
    SELECT q.query_hash, SUM(r.count_executions) AS calls,
           SUM(r.avg_duration * r.count_executions) AS microseconds, MAX(p.plan_id) AS plan_id
      FROM sys.query_store_runtime_stats AS r
      JOIN sys.query_store_plan AS p ON p.plan_id = r.plan_id
      JOIN sys.query_store_query AS q ON q.query_id = p.query_id
     WHERE q.is_internal_query = 0
     GROUP BY q.query_hash)
SELECT TOP ({top}) t.query_sql_text, s.calls, s.microseconds / s.calls / 1000.0,
       s.microseconds / SUM(s.microseconds) OVER (), p.query_plan
  FROM spent AS s
  JOIN sys.query_store_plan AS p ON p.plan_id = s.plan_id
  JOIN sys.query_store_query AS q ON q.query_id = p.query_id
  JOIN sys.query_store_query_text AS t ON t.query_text_id = q.query_text_id
 ORDER BY s.microseconds DESC

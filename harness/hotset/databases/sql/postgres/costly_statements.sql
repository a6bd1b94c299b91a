-- The statements of this database that took the most time, whichever roles sent them. Of other roles'
-- statements the text is hidden unless this role may read it.
SELECT s.query, sum(s.calls)::bigint, sum(s.total_exec_time) / greatest(sum(s.calls), 1),
       sum(s.total_exec_time) / nullif(sum(sum(s.total_exec_time)) OVER (), 0)
  FROM {place}.pg_stat_statements AS s
 WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
 GROUP BY s.query
 ORDER BY sum(s.total_exec_time) DESC
 LIMIT {most}

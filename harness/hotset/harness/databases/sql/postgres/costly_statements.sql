-- The statements of this database that took the most time, but for those that ask only the catalogs.
-- Of other roles' statements the text is hidden unless this role may read it.
SELECT s.query, s.calls, s.mean_exec_time, s.total_exec_time / sum(s.total_exec_time) OVER ()
  FROM pg_stat_statements s
 WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND (s.query ~* '^\s*(/\*.*?\*/\s*)*(select|insert|update|delete|with)\y'
        OR s.query = '<insufficient privilege>')
   AND s.query !~* '\y(pg_[a-z_]+|information_schema)\y'
 ORDER BY s.total_exec_time DESC
 LIMIT {top}

-- Tables of this database that a session has to itself, or waits to have: who reads them waits for it.
-- A transaction that was prepared holds them without a session.
SELECT format('table %s is locked by %s', c.oid::regclass,
              coalesce(format('session %s (%s, role %s, since %s)%s: %s', a.pid,
                              coalesce(nullif(a.application_name, ''), 'a program without a name'),
                              coalesce(a.usename, '?'),
                              to_char(coalesce(a.xact_start, a.backend_start), 'HH24:MI:SS'),
                              CASE WHEN NOT l.granted
                                   THEN ', which itself waits for ' || coalesce(
                                            nullif(array_to_string(pg_blocking_pids(l.pid), ', '),
                                                   ''), 'another')
                                   ELSE '' END,
                              left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)),
                       'a prepared transaction (pg_prepared_xacts)'))
  FROM pg_locks AS l
  JOIN pg_class AS c ON c.oid = l.relation
  LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
 WHERE l.mode = 'AccessExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND c.relkind IN ('r', 'p', 'm')
 ORDER BY l.granted DESC, 1
 LIMIT 5

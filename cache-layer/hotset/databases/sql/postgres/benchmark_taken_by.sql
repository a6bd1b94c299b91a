-- Which session holds the lock of take_benchmark.sql.
SELECT format('session %s (%s, role %s, since %s)', pid,
              coalesce(nullif(application_name, ''), 'a program without a name'),
              coalesce(usename, '?'), to_char(backend_start, 'HH24:MI:SS'))
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted
  AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid::bigint = hashtext('hotset')::bigint & 4294967295
  AND objid::bigint = hashtext('{benchmark}')::bigint & 4294967295

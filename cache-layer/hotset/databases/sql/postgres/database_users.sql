-- Who is connected to a database, whoever holds it for a run first; other roles' programs may be
-- hidden.
SELECT application_name LIKE 'hotset: keeps%', pid, coalesce(usename, '?'),
       coalesce(nullif(application_name, ''), 'a program without a name'),
       to_char(backend_start, 'HH24:MI:SS')
FROM pg_stat_activity
WHERE datname = '{name}'
ORDER BY 1 DESC NULLS LAST, backend_start

-- Cancels what the sessions of this name are at, and says for how many seconds each has been at it.
SELECT extract(epoch FROM clock_timestamp() - coalesce(xact_start, query_start))::float8,
       pg_cancel_backend(pid)
FROM pg_stat_activity
WHERE application_name = {name} AND state <> 'idle'

-- What the sessions of this database do, but for those that only count a benchmark's orders, or
-- keep something for a run. One that has been idle for long is nobody's user, one without a state is
-- still logging in; of one that this role may not see, kind and state are null.
SELECT state, wait_event_type, wait_event, count(*)
  FROM pg_stat_activity
 WHERE datname = current_database() AND coalesce(backend_type, 'client backend') = 'client backend'
   AND pid <> pg_backend_pid() AND query NOT ILIKE '%sum(d_next_o_id)%'
   AND coalesce(application_name, '') NOT LIKE 'hotset: %'
   AND (backend_type IS NULL OR state <> 'idle' OR state_change > clock_timestamp() - interval '5 s')
 GROUP BY state, wait_event_type, wait_event

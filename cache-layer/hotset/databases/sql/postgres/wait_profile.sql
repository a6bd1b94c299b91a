-- What pg_wait_sampling has counted of the sessions of this database since its server started, in
-- milliseconds; and whether a session is somebody's: one that has been idle for long is nobody's.
SELECT a.pid, a.state <> 'idle' OR a.state_change > clock_timestamp() - interval '5 s',
       p.event_type, p.event,
       coalesce(sum(p.count), 0)::bigint * current_setting('pg_wait_sampling.profile_period')::integer
  FROM pg_stat_activity AS a LEFT JOIN {place}.pg_wait_sampling_profile AS p ON p.pid = a.pid
 WHERE a.datname = current_database() AND a.backend_type = 'client backend'
   AND a.pid <> pg_backend_pid() AND a.state IS NOT NULL AND a.query NOT ILIKE '%sum(d_next_o_id)%'
   AND a.application_name NOT LIKE 'hotset: %'
 GROUP BY 1, 2, 3, 4

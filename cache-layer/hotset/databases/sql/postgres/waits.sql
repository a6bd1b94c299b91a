SELECT event_type || ':' || event, sum(count)::bigint,
       sum(count) * current_setting('pg_wait_sampling.profile_period')::integer
  FROM {place}.pg_wait_sampling_profile WHERE event IS NOT NULL GROUP BY 1 ORDER BY 3 DESC

-- Locks a benchmark's tables for this session; false: another session has them. The numbers are
-- hotset's own, the session's name tells others who it is.
SELECT pg_try_advisory_lock(hashtext('hotset'), hashtext('{benchmark}'))
FROM set_config('application_name', 'hotset: {whose}', false),
     (SELECT count(set_config(name, '0', false)) FROM pg_settings
       WHERE name = 'idle_session_timeout') AS stays

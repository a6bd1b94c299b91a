-- The session stays for as long as a run, also where idle ones are ended (PostgreSQL 14 and later);
-- its name tells others who it is, and keeps it out of what is counted of a benchmark's sessions.
SELECT set_config('application_name', 'hotset: {whose}', false),
       (SELECT count(set_config(name, '0', false)) FROM pg_settings
         WHERE name = 'idle_session_timeout')

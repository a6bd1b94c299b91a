-- How long a session that only looks waits for a table that another has to itself; a shorter limit of
-- the role's or of the server's stays.
SELECT set_config('lock_timeout', '{seconds}s', false)
 WHERE current_setting('lock_timeout') = '0'

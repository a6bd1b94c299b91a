-- For how long each of this role's sessions that call HammerDB's procedures has been in one, in seconds: 0, it is in none.
SELECT CASE WHEN state = 'active' THEN extract(epoch FROM clock_timestamp() - xact_start) ELSE 0 END
FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
  AND query ~* '\m(neword|payment|delivery|slev|ostat)\M'

-- How many others are connected to this database.
SELECT count(*)::integer
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()

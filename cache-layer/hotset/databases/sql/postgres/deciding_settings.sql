-- Settings that decide what a commit costs, as a session like the users' has them.
SELECT name, current_setting(name) FROM pg_settings
WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'wal_compression',
               'checkpoint_timeout', 'max_wal_size', 'checkpoint_completion_target')
ORDER BY 1

SELECT current_database(), current_setting('server_version'),
       pg_database_size(current_database()),
       (SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers')

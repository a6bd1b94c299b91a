SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'

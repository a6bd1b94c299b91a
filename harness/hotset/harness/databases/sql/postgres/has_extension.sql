SELECT count(*) FROM pg_extension WHERE extname = '{name}'

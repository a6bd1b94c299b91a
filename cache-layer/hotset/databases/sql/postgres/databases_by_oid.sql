SELECT oid::bigint, datname::text FROM pg_database

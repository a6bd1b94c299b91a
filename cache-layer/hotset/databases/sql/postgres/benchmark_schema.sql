-- The server, the database, and the mark of a benchmark's schema (empty: none; null: no such schema).
SELECT coalesce(host(inet_server_addr()), 'a local socket') || ', port '
           || current_setting('port'),
       current_database()::text,
       (SELECT coalesce(obj_description(oid, 'pg_namespace'), '')
          FROM pg_namespace WHERE nspname = {schema})

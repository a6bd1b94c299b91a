-- The server, the database and the schema where an unqualified CREATE makes things (null: none).
SELECT coalesce(host(inet_server_addr()), 'a local socket') || ', port '
           || current_setting('port'),
       current_database()::text, current_schema()::text

-- The server, the database and the schema where an unqualified CREATE makes things (null: none).
SELECT CAST(@@SERVERNAME AS nvarchar(256)), DB_NAME(), SCHEMA_NAME()

-- The server, the database, and the mark of a benchmark's schema (empty: none; null: no such schema).
SELECT CAST(@@SERVERNAME AS nvarchar(256)), DB_NAME(),
       (SELECT coalesce(CAST(m.value AS nvarchar(200)), '')
          FROM sys.schemas AS s
          LEFT JOIN sys.extended_properties AS m
            ON m.class = 3 AND m.major_id = s.schema_id AND m.name = 'hotset'
         WHERE s.name = {schema})

-- The pages that its data files have; what the server holds of them in memory it tells to few.
SELECT DB_NAME(), CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)),
       (SELECT SUM(CAST(size AS bigint)) * 8192 FROM sys.database_files WHERE type = 0),
       CAST(0 AS bigint)

-- Sizes are in pages of 8 KiB. A file of tempdb that was moved is at its old place until the server is
-- restarted, which only tempdb itself tells.
SELECT d.name, f.name, f.type_desc, coalesce(t.physical_name, f.physical_name),
       CAST(f.size AS bigint) * 8192
  FROM sys.master_files AS f
  JOIN sys.databases AS d ON d.database_id = f.database_id
  LEFT JOIN tempdb.sys.database_files AS t ON d.name = 'tempdb' AND t.file_id = f.file_id
 WHERE f.type_desc IN ('ROWS', 'LOG')
 ORDER BY d.name, f.file_id

-- Sizes are in pages of 8 KiB.
SELECT d.name, f.name, f.type_desc, f.physical_name, CAST(f.size AS bigint) * 8192
  FROM sys.master_files AS f JOIN sys.databases AS d ON d.database_id = f.database_id
 WHERE f.type_desc IN ('ROWS', 'LOG')
 ORDER BY d.name, f.file_id

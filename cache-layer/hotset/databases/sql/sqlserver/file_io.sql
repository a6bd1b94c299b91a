SELECT d.name, f.physical_name, f.type_desc,
       v.num_of_reads, v.num_of_bytes_read, v.io_stall_read_ms,
       v.num_of_writes, v.num_of_bytes_written, v.io_stall_write_ms
  FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS v
  JOIN sys.master_files AS f ON f.database_id = v.database_id AND f.file_id = v.file_id
  JOIN sys.databases AS d ON d.database_id = v.database_id
 WHERE f.type_desc IN ('ROWS', 'LOG')
 ORDER BY d.name, f.file_id

-- The files of this database; a write of the log is its flush.
SELECT named.name, named.value
  FROM (SELECT SUM(CASE WHEN f.type = 0 THEN v.num_of_reads END) AS reads,
               SUM(CASE WHEN f.type = 0 THEN v.num_of_bytes_read END) AS read_bytes,
               SUM(CASE WHEN f.type = 0 THEN v.io_stall_read_ms END) AS read_ms,
               SUM(CASE WHEN f.type = 0 THEN v.num_of_writes END) AS writes,
               SUM(CASE WHEN f.type = 0 THEN v.num_of_bytes_written END) AS write_bytes,
               SUM(CASE WHEN f.type = 0 THEN v.io_stall_write_ms END) AS write_ms,
               SUM(CASE WHEN f.type = 1 THEN v.num_of_bytes_written END) AS log_bytes,
               SUM(CASE WHEN f.type = 1 THEN v.num_of_writes END) AS log_writes
          FROM sys.dm_io_virtual_file_stats(DB_ID(), NULL) AS v
          JOIN sys.database_files AS f ON f.file_id = v.file_id) AS s
 CROSS APPLY (VALUES ('reads', reads), ('read_bytes', read_bytes), ('read_ms', read_ms),
                     ('writes', writes), ('write_bytes', write_bytes), ('write_ms', write_ms),
                     ('log_bytes', log_bytes), ('log_writes', log_writes)) AS named (name, value)

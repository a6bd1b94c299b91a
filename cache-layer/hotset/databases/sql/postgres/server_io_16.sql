-- A file that grows is written to.
SELECT name, value
  FROM (SELECT sum(reads) AS reads, sum(reads * op_bytes) AS read_bytes,
               sum(read_time)::numeric AS read_ms,
               sum(coalesce(writes, 0) + coalesce(extends, 0)) AS writes,
               sum((coalesce(writes, 0) + coalesce(extends, 0)) * op_bytes) AS write_bytes,
               sum(coalesce(write_time, 0) + coalesce(extend_time, 0))::numeric AS write_ms,
               sum(fsyncs) AS fsyncs
          FROM pg_stat_io) AS io,
       pg_stat_wal AS w,
       (SELECT current_setting('track_io_timing')::boolean AS timed) AS s
 CROSS JOIN LATERAL (VALUES
       ('reads', reads), ('read_bytes', read_bytes), ('read_ms', CASE WHEN timed THEN read_ms END),
       ('writes', writes), ('write_bytes', write_bytes), ('write_ms', CASE WHEN timed THEN write_ms END),
       ('fsyncs', fsyncs),
       ('log_bytes', wal_bytes), ('log_writes', wal_write), ('log_syncs', wal_sync)) AS named (name, value)

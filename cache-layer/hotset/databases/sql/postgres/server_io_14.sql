-- Before 16 only pages that missed the buffers or left them are counted, and no fsync of data.
SELECT name, value
  FROM (SELECT sum(blks_read) AS reads, sum(blk_read_time)::numeric AS read_ms FROM pg_stat_database) AS d,
       (SELECT buffers_checkpoint + buffers_clean + buffers_backend AS writes FROM pg_stat_bgwriter) AS b,
       pg_stat_wal AS w,
       (SELECT current_setting('block_size')::integer AS page,
               current_setting('track_io_timing')::boolean AS timed) AS s
 CROSS JOIN LATERAL (VALUES
       ('reads', reads), ('read_bytes', reads * page), ('read_ms', CASE WHEN timed THEN read_ms END),
       ('writes', writes), ('write_bytes', writes::numeric * page), ('write_ms', NULL), ('fsyncs', NULL),
       ('log_bytes', wal_bytes), ('log_writes', wal_write), ('log_syncs', wal_sync)) AS named (name, value)

-- A file that grows is written to. From 18 on the log has rows of its own in pg_stat_io.
SELECT name, value
  FROM (SELECT sum(reads) FILTER (WHERE object <> 'wal') AS reads,
               sum(read_bytes) FILTER (WHERE object <> 'wal') AS read_bytes,
               sum(read_time) FILTER (WHERE object <> 'wal')::numeric AS read_ms,
               sum(coalesce(writes, 0) + coalesce(extends, 0)) FILTER (WHERE object <> 'wal') AS writes,
               sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0))
                   FILTER (WHERE object <> 'wal') AS write_bytes,
               sum(coalesce(write_time, 0) + coalesce(extend_time, 0))
                   FILTER (WHERE object <> 'wal')::numeric AS write_ms,
               sum(fsyncs) FILTER (WHERE object <> 'wal') AS fsyncs,
               sum(writes) FILTER (WHERE object = 'wal') AS log_writes,
               sum(fsyncs) FILTER (WHERE object = 'wal') AS log_syncs
          FROM pg_stat_io) AS io,
       pg_stat_wal AS w,
       (SELECT current_setting('track_io_timing')::boolean AS timed) AS s
 CROSS JOIN LATERAL (VALUES
       ('reads', reads), ('read_bytes', read_bytes), ('read_ms', CASE WHEN timed THEN read_ms END),
       ('writes', writes), ('write_bytes', write_bytes), ('write_ms', CASE WHEN timed THEN write_ms END),
       ('fsyncs', fsyncs),
       ('log_bytes', wal_bytes), ('log_writes', log_writes), ('log_syncs', log_syncs)) AS named (name, value)

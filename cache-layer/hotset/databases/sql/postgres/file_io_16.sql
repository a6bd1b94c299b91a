SELECT object, sum(reads)::bigint, sum(reads * op_bytes)::bigint,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(read_time) END,
       sum(writes)::bigint, sum(writes * op_bytes)::bigint,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(write_time) END
  FROM pg_stat_io GROUP BY object ORDER BY object

-- Before 16 there are only reads that missed the buffers, per database.
SELECT datname::text, blks_read, blks_read * current_setting('block_size')::integer,
       CASE WHEN current_setting('track_io_timing')::boolean THEN blk_read_time END,
       NULL, NULL, NULL
  FROM pg_stat_database WHERE datname IS NOT NULL ORDER BY datname

-- A tablespace without a location of its own lies in the data directory.
SELECT '(server)', spcname::text, 'data',
       coalesce(nullif(pg_tablespace_location(oid), ''), current_setting('data_directory')),
       pg_tablespace_size(oid)
  FROM pg_tablespace
 WHERE spcname <> ALL (string_to_array(replace(current_setting('temp_tablespaces'), ' ', ''), ','))
UNION ALL
SELECT '(server)', 'pg_wal', 'log', current_setting('data_directory') || '/pg_wal',
       (SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir())
UNION ALL
SELECT '(server)', spcname::text, 'temp', pg_tablespace_location(oid), pg_tablespace_size(oid)
  FROM pg_tablespace
 WHERE spcname = ANY (string_to_array(replace(current_setting('temp_tablespaces'), ' ', ''), ','))

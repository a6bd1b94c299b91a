-- What the files and processes of this very server say, too: the identifier of its cluster, which clones
-- share; when it was started, seconds since 1970; its port; the process that serves this connection; its
-- folder in a tablespace, which another version's cluster may share (pg_upgrade).
SELECT system_identifier::text, extract(epoch FROM pg_postmaster_start_time())::bigint,
       current_setting('port'), pg_backend_pid(),
       'PG_' || current_setting('server_version_num')::int / 10000 || '_' || catalog_version_no
  FROM pg_control_system()

-- What the files of this very server say, too: the identifier of its cluster, which clones share; when
-- it was started, seconds since 1970; its port.
SELECT system_identifier::text, extract(epoch FROM pg_postmaster_start_time())::bigint,
       current_setting('port')
  FROM pg_control_system()

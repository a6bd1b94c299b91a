-- Sessions of users in this database, and their CPU time in milliseconds; not the one that holds a
-- run's lock (keep_session.sql).
SELECT COUNT(*), CAST(COALESCE(SUM(CAST(cpu_time AS bigint)), 0) AS bigint)
  FROM sys.dm_exec_sessions
 WHERE is_user_process = 1 AND database_id = DB_ID() AND session_id <> @@SPID
   AND (context_info IS NULL OR SUBSTRING(context_info, 1, 6) <> 0x686F74736574)

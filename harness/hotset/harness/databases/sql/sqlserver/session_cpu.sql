-- Sessions of users in this database, and their CPU time in milliseconds.
SELECT COUNT(*), CAST(COALESCE(SUM(CAST(cpu_time AS bigint)), 0) AS bigint)
  FROM sys.dm_exec_sessions
 WHERE is_user_process = 1 AND database_id = DB_ID() AND session_id <> @@SPID

-- The isolation level of a session like the users'; READ COMMITTED by locks or by row versions.
SELECT CASE s.transaction_isolation_level
            WHEN 1 THEN 'read uncommitted'
            WHEN 2 THEN CASE d.is_read_committed_snapshot_on
                             WHEN 1 THEN 'read committed snapshot' ELSE 'read committed' END
            WHEN 3 THEN 'repeatable read' WHEN 4 THEN 'serializable' WHEN 5 THEN 'snapshot' END
  FROM sys.dm_exec_sessions AS s CROSS JOIN sys.databases AS d
 WHERE s.session_id = @@SPID AND d.name = DB_NAME()

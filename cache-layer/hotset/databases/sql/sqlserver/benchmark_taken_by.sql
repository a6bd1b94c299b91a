-- Which session holds the lock of take_benchmark.sql (needs VIEW SERVER STATE).
SELECT CONCAT('session ', s.session_id, ' (', s.program_name, ' on ', s.host_name, ', login ',
              s.login_name, ', since ', CONVERT(varchar(8), s.login_time, 108), ')')
FROM sys.dm_tran_locks AS l JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
WHERE l.resource_type = 'APPLICATION' AND l.request_status = 'GRANT'
  AND l.resource_database_id = DB_ID() AND l.resource_description LIKE '%hotset {benchmark}%'

-- What sessions wait for; background threads that sleep by design are left out (by the list in
-- "sys.dm_os_wait_stats" of the manual and what servers of 2019 and 2022 show when nobody uses them).
-- Waits for storage stay in: commits on a synchronous replica, a growing file being zeroed.
SELECT wait_type, waiting_tasks_count, wait_time_ms
  FROM sys.dm_os_wait_stats
 WHERE waiting_tasks_count > 0
   AND wait_type NOT LIKE 'SLEEP%' AND wait_type NOT LIKE '%[_]SLEEP'
   AND wait_type NOT LIKE 'BROKER%' AND wait_type NOT LIKE 'XE%' AND wait_type NOT LIKE 'QDS%'
   AND wait_type NOT LIKE 'PWAIT%' AND wait_type NOT LIKE 'WAIT[_]XTP%'
   AND wait_type NOT LIKE 'PARALLEL[_]REDO%' AND wait_type NOT LIKE '%QUEUE'
   AND (wait_type NOT LIKE 'HADR%' OR wait_type = 'HADR_SYNC_COMMIT')
   AND (wait_type NOT LIKE 'PREEMPTIVE%' OR wait_type IN ('PREEMPTIVE_OS_WRITEFILEGATHER',
       'PREEMPTIVE_OS_WRITEFILE', 'PREEMPTIVE_OS_FLUSHFILEBUFFERS'))
   AND wait_type NOT IN ('WAITFOR', 'DIRTY_PAGE_POLL', 'REQUEST_FOR_DEADLOCK_SEARCH',
       'SOS_WORK_DISPATCHER', 'DISPATCHER_QUEUE_SEMAPHORE', 'CLR_AUTO_EVENT', 'CLR_MANUAL_EVENT',
       'FT_IFTS_SCHEDULER_IDLE_WAIT', 'PVS_PREALLOCATE', 'VDI_CLIENT_OTHER',
       'MEMORY_ALLOCATION_EXT', 'STARTUP_DEPENDENCY_MANAGER', 'REDO_THREAD_PENDING_WORK')
 ORDER BY wait_time_ms DESC

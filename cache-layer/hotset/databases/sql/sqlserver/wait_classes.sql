-- Waits of tasks that work, without those of threads that sleep by design: for the resource, and
-- then for a scheduler.
SELECT wait_type, wait_time_ms - signal_wait_time_ms, signal_wait_time_ms
  FROM sys.dm_os_wait_stats
 WHERE wait_type LIKE 'PAGEIOLATCH%' OR wait_type LIKE 'LCK%' OR wait_type LIKE 'PAGELATCH%'
    OR wait_type LIKE 'LATCH%' OR wait_type LIKE 'LOGMGR_FLUSH%' OR wait_type LIKE 'CX%'
    OR wait_type IN ('IO_COMPLETION', 'ASYNC_IO_COMPLETION', 'IO_QUEUE_LIMIT', 'WRITE_COMPLETION',
       'WRITELOG', 'LOGBUFFER', 'HADR_SYNC_COMMIT', 'ASYNC_NETWORK_IO', 'NET_WAITFOR_PACKET',
       'SOS_SCHEDULER_YIELD', 'THREADPOOL', 'RESOURCE_SEMAPHORE', 'RESOURCE_SEMAPHORE_QUERY_COMPILE')

-- What sessions wait for; background threads that sleep by design are left out.
SELECT wait_type, waiting_tasks_count, wait_time_ms
  FROM sys.dm_os_wait_stats
 WHERE waiting_tasks_count > 0
   AND wait_type NOT LIKE 'SLEEP%' AND wait_type NOT LIKE 'BROKER%'
   AND wait_type NOT LIKE 'XE%' AND wait_type NOT LIKE 'HADR%' AND wait_type NOT LIKE 'QDS%'
   AND wait_type NOT LIKE 'PREEMPTIVE%' AND wait_type NOT LIKE '%QUEUE'
   AND wait_type NOT IN ('LAZYWRITER_SLEEP', 'CHECKPOINT_QUEUE', 'WAITFOR', 'DIRTY_PAGE_POLL',
       'SOS_WORK_DISPATCHER', 'SP_SERVER_DIAGNOSTICS_SLEEP', 'DISPATCHER_QUEUE_SEMAPHORE',
       'CLR_AUTO_EVENT', 'CLR_MANUAL_EVENT', 'FT_IFTS_SCHEDULER_IDLE_WAIT',
       'PVS_PREALLOCATE', 'VDI_CLIENT_OTHER')
 ORDER BY wait_time_ms DESC

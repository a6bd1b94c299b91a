-- cntr_type 272696576 counts up, 65792 is a state; the hit ratio is one raw value over its base.
SELECT RTRIM(counter_name), CAST(cntr_value AS bigint), cntr_type
  FROM sys.dm_os_performance_counters
 WHERE (RTRIM(counter_name) IN ('Batch Requests/sec', 'Page reads/sec', 'Page writes/sec',
                                'Checkpoint pages/sec', 'Buffer cache hit ratio',
                                'Buffer cache hit ratio base')
        AND RTRIM(instance_name) = '')
    OR (RTRIM(counter_name) IN ('Transactions/sec', 'Log Flushes/sec', 'Log Bytes Flushed/sec',
                                'Lock Waits/sec', 'Number of Deadlocks/sec')
        AND RTRIM(instance_name) = '_Total')
    OR (RTRIM(counter_name) = 'Page life expectancy' AND object_name LIKE '%Buffer Manager%')
 ORDER BY counter_name

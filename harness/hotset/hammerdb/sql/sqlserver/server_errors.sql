-- Deadlocks and errors sent to users by this instance since it started.
SELECT
  sum(CASE WHEN object_name LIKE '%:Locks%' AND counter_name LIKE 'Number of Deadlocks/sec%'
      THEN cntr_value ELSE 0 END),
  sum(CASE WHEN object_name LIKE '%:SQL Errors%' AND counter_name LIKE 'Errors/sec%'
      AND instance_name LIKE 'User Errors%' THEN cntr_value ELSE 0 END)
FROM sys.dm_os_performance_counters
WHERE instance_name LIKE '\_Total%' ESCAPE '\' OR instance_name LIKE 'User Errors%'

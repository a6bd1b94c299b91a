-- The histogram of the statistics that a column leads: each step's highest value, the rows that have
-- it, and those between it and the step before. Without statistics, one row of nulls.
SELECT TYPE_NAME(c.system_type_id),
       CASE WHEN TYPE_NAME(c.system_type_id) LIKE '%date%' OR TYPE_NAME(c.system_type_id) = 'time'
            THEN CONVERT(nvarchar(4000), h.range_high_key, 121)
            ELSE CAST(h.range_high_key AS nvarchar(4000)) END,
       h.equal_rows, h.range_rows
  FROM sys.columns AS c
 OUTER APPLY (SELECT TOP (1) sc.stats_id
                FROM sys.stats_columns AS sc
               WHERE sc.object_id = c.object_id AND sc.column_id = c.column_id
                 AND sc.stats_column_id = 1
               ORDER BY sc.stats_id) AS s
 OUTER APPLY sys.dm_db_stats_histogram(c.object_id, s.stats_id) AS h
 WHERE c.object_id = OBJECT_ID({table}) AND c.name = {column}
 ORDER BY h.step_number

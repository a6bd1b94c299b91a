-- Settings that decide what a commit costs, and the files that may grow in a window.
SELECT s.name, s.value
FROM sys.databases AS d
CROSS APPLY (VALUES
    ('delayed durability', CAST(d.delayed_durability_desc AS nvarchar(128))),
    ('recovery model', CAST(d.recovery_model_desc AS nvarchar(128))),
    ('target recovery time', CAST(d.target_recovery_time_in_seconds AS nvarchar(20)) + ' s'),
    ('read committed snapshot', CASE d.is_read_committed_snapshot_on WHEN 1 THEN 'on' ELSE 'off' END),
    ('query store', CASE d.is_query_store_on WHEN 1 THEN 'on' ELSE 'off' END),
    ('data and log files', (SELECT CAST(COUNT(*) AS nvarchar(20)) + ' of '
        + CAST(SUM(CAST(size AS bigint)) / 128 AS nvarchar(20)) + ' MiB' FROM sys.database_files)),
    ('tempdb files', (SELECT CAST(COUNT(*) AS nvarchar(20)) + ' of '
        + CAST(SUM(CAST(size AS bigint)) / 128 AS nvarchar(20)) + ' MiB'
        FROM tempdb.sys.database_files))) AS s (name, value)
WHERE d.database_id = DB_ID()

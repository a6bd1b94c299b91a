-- Tables and routines with one of these names in a schema (null: where things are made): name, kind, owner, mark, rows, the name that
-- DROP takes.
SELECT lower(o.name), CASE o.type WHEN 'U' THEN 'table' WHEN 'P' THEN 'procedure' ELSE 'function' END,
       coalesce(USER_NAME(coalesce(o.principal_id, s.principal_id)), 'an unknown owner'),
       CAST(m.value AS nvarchar(200)),
       (SELECT sum(p.rows) FROM sys.partitions AS p
         WHERE p.object_id = o.object_id AND p.index_id IN (0, 1)),
       QUOTENAME(s.name) + '.' + QUOTENAME(o.name)
  FROM sys.objects AS o
  JOIN sys.schemas AS s ON s.schema_id = o.schema_id
  LEFT JOIN sys.extended_properties AS m
    ON m.class = 1 AND m.major_id = o.object_id AND m.minor_id = 0 AND m.name = 'hotset'
 WHERE s.name = coalesce({schema}, SCHEMA_NAME()) AND o.type IN ('U', 'P', 'FN') AND lower(o.name) IN ({names})

-- What has one of these names in the schema where an unqualified CREATE makes things: name, kind,
-- owner, mark, rows, the name that DROP takes, number.
SELECT lower(o.name),
       CASE o.type WHEN 'U' THEN 'table' WHEN 'V' THEN 'view' WHEN 'P' THEN 'procedure'
                   WHEN 'SN' THEN 'synonym' WHEN 'SO' THEN 'sequence' WHEN 'PK' THEN 'constraint'
                   ELSE lower(replace(o.type_desc, '_', ' ')) END,
       coalesce(USER_NAME(coalesce(o.principal_id, s.principal_id)), 'an unknown owner'),
       CAST(m.value AS nvarchar(200)),
       (SELECT sum(p.rows) FROM sys.partitions AS p
         WHERE p.object_id = o.object_id AND p.index_id IN (0, 1)),
       QUOTENAME(s.name) + '.' + QUOTENAME(o.name),
       o.object_id
  FROM sys.objects AS o
  JOIN sys.schemas AS s ON s.schema_id = o.schema_id
  LEFT JOIN sys.extended_properties AS m
    ON m.class = 1 AND m.major_id = o.object_id AND m.minor_id = 0 AND m.name = 'hotset'
 WHERE s.name = SCHEMA_NAME() AND lower(o.name) IN ({names}, {routines})

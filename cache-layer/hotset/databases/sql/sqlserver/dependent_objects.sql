-- What needs one of these tables or procedures and is none of them: foreign keys of other tables,
-- views, functions and procedures.
SELECT 'foreign key ' + f.name + ' on table ' + OBJECT_SCHEMA_NAME(f.parent_object_id) + '.'
           + OBJECT_NAME(f.parent_object_id)
  FROM sys.foreign_keys AS f
 WHERE f.referenced_object_id IN ({tables}) AND f.parent_object_id NOT IN ({tables})
UNION
SELECT lower(replace(o.type_desc, '_', ' ')) + ' ' + OBJECT_SCHEMA_NAME(o.object_id) + '.' + o.name
  FROM sys.sql_expression_dependencies AS d
  JOIN sys.objects AS o ON o.object_id = d.referencing_id
 WHERE d.referenced_id IN ({tables}, {routines})
   AND o.object_id NOT IN ({tables}, {routines}) AND o.type NOT IN ('C', 'D', 'TR')
 ORDER BY 1

-- The columns of these tables and the parameters of these procedures, in order, without lengths.
SELECT c.object_id, lower(c.name) + ' ' + t.name, c.column_id
  FROM sys.columns AS c JOIN sys.types AS t ON t.user_type_id = c.user_type_id
 WHERE c.object_id IN ({tables})
UNION ALL
SELECT p.object_id, lower(p.name) + ' ' + t.name, p.parameter_id
  FROM sys.all_parameters AS p JOIN sys.types AS t ON t.user_type_id = p.user_type_id
 WHERE p.object_id IN ({routines})
 ORDER BY 1, 3

DECLARE @schema sysname;
SET @schema = SCHEMA_NAME();
EXEC sp_addextendedproperty 'hotset', '{mark}', 'SCHEMA', @schema, '{kind}', '{name}';

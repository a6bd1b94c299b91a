-- hotset's mark, by which `tpch drop` and `build --replace` know what they may remove.
DECLARE @schema sysname;
SET @schema = SCHEMA_NAME();
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'tpch_load';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'lineitem';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'orders';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'partsupp';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'part';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'customer';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'supplier';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'nation';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', @schema, 'TABLE', 'region';

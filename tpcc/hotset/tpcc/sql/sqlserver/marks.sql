-- hotset's mark, by which `tpcc drop` and `build --replace` know what they may remove.
DECLARE @schema sysname;
SET @schema = SCHEMA_NAME();
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'warehouse';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'district';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'customer';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'history';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'new_order';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'orders';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'order_line';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'item';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'TABLE', 'stock';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'PROCEDURE', 'neword';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'PROCEDURE', 'payment';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'PROCEDURE', 'ostat';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'PROCEDURE', 'delivery';
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', @schema, 'PROCEDURE', 'slev';

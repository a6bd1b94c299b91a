-- Building an index read every row of its key, and what that found stays; these are the other
-- columns' statistics. Babelfish refuses the statement (its server gathers them by itself), so the
-- batch asks where it is first.
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.order_line WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.stock WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.customer WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.orders WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.history WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.new_order WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.item WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.district WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS hotset_tpcc.warehouse WITH COLUMNS');

-- Building an index read every row of its key; these are the other columns' statistics. Babelfish
-- refuses the statement (its server gathers them by itself), so the batch asks where it is first.
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS order_line');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS stock');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS customer');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS orders');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS history');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS new_order');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS item');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS district');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS warehouse');

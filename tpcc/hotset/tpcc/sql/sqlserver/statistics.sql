-- Building an index read every row of its key, and what that found stays; these are the other
-- columns' statistics. Babelfish refuses the statement (its server gathers them by itself), so the
-- batch asks where it is first.
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS order_line WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS stock WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS customer WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS orders WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS history WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS new_order WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS item WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS district WITH COLUMNS');
GO
IF SERVERPROPERTY('BabelfishVersion') IS NULL EXEC('UPDATE STATISTICS warehouse WITH COLUMNS');

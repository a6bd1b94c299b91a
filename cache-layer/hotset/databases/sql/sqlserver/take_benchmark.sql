-- Locks a benchmark's tables for this session; 0: another session has them. By the database's name: a compatible
-- server may have one set of such locks for all.
SET NOCOUNT ON
DECLARE @got int, @what nvarchar(255) = 'hotset {benchmark} of ' + DB_NAME()
EXEC @got = sp_getapplock @Resource = @what, @LockMode = 'Exclusive',
    @LockOwner = 'Session', @LockTimeout = 0, @DbPrincipal = 'public'
SELECT CASE WHEN @got >= 0 THEN 1 ELSE 0 END

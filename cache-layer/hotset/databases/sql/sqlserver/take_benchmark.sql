-- Locks a benchmark's tables for this session; 0: another session has them.
SET NOCOUNT ON
DECLARE @got int
EXEC @got = sp_getapplock @Resource = 'hotset {benchmark}', @LockMode = 'Exclusive',
    @LockOwner = 'Session', @LockTimeout = 0, @DbPrincipal = 'public'
SELECT CASE WHEN @got >= 0 THEN 1 ELSE 0 END

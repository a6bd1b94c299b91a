-- Locks a benchmark's tables for this session; 0: another session has them.
SET NOCOUNT ON
SET CONTEXT_INFO 0x686F74736574 -- "hotset": by it session_cpu.sql knows this session
DECLARE @got int
EXEC @got = sp_getapplock @Resource = 'hotset {benchmark}', @LockMode = 'Exclusive',
    @LockOwner = 'Session', @LockTimeout = 0, @DbPrincipal = 'public'
SELECT CASE WHEN @got >= 0 THEN 1 ELSE 0 END

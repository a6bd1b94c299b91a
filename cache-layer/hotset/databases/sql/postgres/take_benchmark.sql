-- Locks a benchmark's tables for this session; false: another session has them. The numbers are
-- hotset's own.
SELECT pg_try_advisory_lock(hashtext('hotset'), hashtext('{benchmark}'))

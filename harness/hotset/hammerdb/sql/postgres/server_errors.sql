-- Deadlocks and rollbacks of this database since its statistics began.
SELECT deadlocks, xact_rollback FROM pg_stat_database WHERE datname = current_database()

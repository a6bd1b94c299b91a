-- 0: off, 1: read-only, 2: it collects, 3: in error.
SELECT actual_state FROM sys.database_query_store_options

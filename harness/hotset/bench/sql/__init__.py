"""Your own SQL as a workload: scripts in pgbench's language, on any database hotset reaches."""

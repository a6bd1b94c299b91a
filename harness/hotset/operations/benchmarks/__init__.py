"""TPC-C, TPC-H, your own SQL and disks; experiments and their runs."""

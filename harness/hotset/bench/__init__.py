"""TPC-C, TPC-H, your own SQL and disks, measured where they are, and their results as text."""

"""Users and their workload, the window in which they are measured, latencies, steadiness, and
the search for a rate."""

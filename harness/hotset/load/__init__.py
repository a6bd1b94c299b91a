"""Load: users and their workload, the measured window, latencies, whether it was steady, and the
search for a rate."""

"""The power run, the throughput run and the refresh functions."""

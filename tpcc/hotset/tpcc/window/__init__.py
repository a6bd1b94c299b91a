"""A measured window: arrivals, latencies, whether it was steady, and the search for a rate."""

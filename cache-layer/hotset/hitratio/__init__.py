"""Counters, heat and which file or table they belong to."""

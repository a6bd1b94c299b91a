"""Warm-ups, and what a cache is to keep."""

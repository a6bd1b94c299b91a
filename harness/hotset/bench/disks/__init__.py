"""Disks: how fast they are, models of them, and what caches they have."""

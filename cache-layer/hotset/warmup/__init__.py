"""Filling a cache before its users come: targets, plans, off line, on line, snapshots."""

"""Warm-up jobs: targets as users name them, plans, runs that can be resumed, snapshots, schedules."""

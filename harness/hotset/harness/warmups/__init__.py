"""Warm-up jobs: targets as users name them, plans, jobs that resume, snapshots, schedules."""

"""Warm-ups: targets as users name them, plans that can be resumed, snapshots, schedules."""

"""Workloads and disks, measured on what the user has."""

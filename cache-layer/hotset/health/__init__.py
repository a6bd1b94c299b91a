"""Findings about the accelerated disks of a machine: what is to be done, and what is not known."""

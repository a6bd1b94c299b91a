"""Experiments, their runs and reports."""

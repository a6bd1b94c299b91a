"""Predictions from measured runs and traces: throughput, policies, sizes, storage."""

"""What has not been run: traces, caches and predictions."""

"""What has not been run, predicted from what has: throughput, policies, sizes, storage."""

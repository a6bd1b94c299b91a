"""What has not been run: throughput predicted from what has."""

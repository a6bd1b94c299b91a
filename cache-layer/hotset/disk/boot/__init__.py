"""What stands on the machine for its next start."""

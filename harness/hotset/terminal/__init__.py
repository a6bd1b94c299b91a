"""What long work shows on a terminal."""

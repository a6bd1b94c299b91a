"""What the caches served, and what is asked for most."""

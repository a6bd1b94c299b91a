"""Commands that show what the caches served, and what is hot."""

"""One experiment: its file, its arms, its phases and its record."""

"""Releases: what others install, how it is made, and how it is tried in bare systems."""

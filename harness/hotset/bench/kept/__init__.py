"""A measurement of a database or a disk as a run of the archive."""

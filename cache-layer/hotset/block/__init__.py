"""Block devices, file systems and extents: what lies below a tier."""

"""The cache device of a server and the life of its tiers."""

"""The flash devices of a server and the life of their tiers."""

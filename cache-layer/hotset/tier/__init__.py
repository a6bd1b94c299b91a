"""Flash in front of an origin: dm-cache and bcache, their status and their metadata."""

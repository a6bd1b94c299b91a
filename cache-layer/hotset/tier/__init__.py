"""Flash in front of an origin: dm-cache, bcache and hotset's own engine behind one interface."""

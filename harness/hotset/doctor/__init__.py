"""Whether this computer has what hotset needs."""

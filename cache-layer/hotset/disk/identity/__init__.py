"""Which disk, which host: what origins and machines are known by."""

"""Commands about this computer and its lab."""

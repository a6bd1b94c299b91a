"""HammerDB's process: read and watched."""

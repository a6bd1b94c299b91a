"""HammerDB's process: started, guarded, watched and read."""

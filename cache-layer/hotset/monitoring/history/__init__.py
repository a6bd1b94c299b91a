"""History of a machine's tiers from a console: recorded, kept for a week, and shown later."""

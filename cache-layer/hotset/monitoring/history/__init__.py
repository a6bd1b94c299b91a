"""What a console has seen of a machine's tiers: recorded, kept for a week, and shown later."""

"""What every operation is made of: its request, its result, and what runs it."""

"""The verbs as data, and those that answer at once."""

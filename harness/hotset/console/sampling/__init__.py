"""Continuous readings of the console's machine."""

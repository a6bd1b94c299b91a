"""Preparations on the machine for its next boot."""

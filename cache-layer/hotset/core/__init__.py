"""Sizes as types, and where files are kept."""

"""The result document, and values as text."""

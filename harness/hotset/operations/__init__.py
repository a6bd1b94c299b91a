"""What hotset can do, as a table of operations that all ways in call."""

"""Cases to measure: a module each, by the table of cases."""

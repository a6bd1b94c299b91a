"""What can be measured: a module each, by the table of cases."""

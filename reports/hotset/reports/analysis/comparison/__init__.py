"""Several windows or runs beside each other."""

"""What the console reads of its machine, all the time that it runs."""

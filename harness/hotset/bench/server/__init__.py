"""Activity of the database server during a window: its CPU, its devices, its waits."""

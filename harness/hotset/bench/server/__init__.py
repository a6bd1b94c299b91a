"""What the database server does during a window: its CPU, its devices, its waits."""

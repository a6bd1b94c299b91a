"""This computer: its lab, what it lacks, who did what."""

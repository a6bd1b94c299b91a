"""Accelerated disks: their life, what is hot, warm-up, hit ratios."""

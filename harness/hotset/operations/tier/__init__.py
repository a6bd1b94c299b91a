"""What can be done with disks: cards, caches, volumes, their life."""

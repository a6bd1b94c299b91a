"""Pages that report on disks: what is to be done about them, and where they are hot."""

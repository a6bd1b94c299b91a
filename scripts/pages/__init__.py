"""Pages that are made: reference, manual, site, and pictures with what they show."""

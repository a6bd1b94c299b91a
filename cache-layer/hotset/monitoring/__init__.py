"""Hit ratios, heat and status of running tiers."""

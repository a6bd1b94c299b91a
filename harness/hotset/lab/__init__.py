"""The lab: machines, modelled disks and tiers that are made for an experiment and thrown away."""

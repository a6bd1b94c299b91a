"""Machines, slow storage, flash tiers, warm-up and hit ratio.

From the bottom up: ``common`` (units, errors), ``hosts`` (where commands run, and what undoes what
they made), ``block`` (devices, labels, extents), ``tiers`` (dm-cache, bcache, the engine in user
space), ``stats`` (counters, heat), ``warmup``, ``provisioning`` (the life of an accelerated disk)
and ``testbed`` (labs: machines and modelled disks for those who have none).
"""

"""Machines, slow storage, flash tiers, warm-up and hit ratio.

The rooms, from the ground up: ``units`` and ``programs`` (what everything speaks), ``machine``
(``local``, ``remote``, ``vm``: where commands run), ``takedown`` (what undoes what was made),
``image`` and ``lab`` (the frozen virtual machine), ``storage`` (the slow disk and its export),
``tier`` and ``dmcache`` (the accelerator), ``extents`` and ``warmup`` (filling it).
"""

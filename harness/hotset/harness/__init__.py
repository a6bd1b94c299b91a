"""The upper floor: experiment files and phases, engines, the archive of runs, the command line.

``experiment`` is the table of contents of a run; ``arms`` places the database, ``measure`` runs the
workload on it, ``saved`` makes the database image that every arm starts from, ``archive`` keeps
the results.
"""

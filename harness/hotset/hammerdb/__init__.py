"""HammerDB as a driver: scripts, supervision and results of the user's own release.

``tpcc.build``, ``tpcc.run``, ``tpch.build``, ``tpch.run`` are the entries. hotset ships nothing of
HammerDB and patches nothing of it: ``HAMMERDB_HOME`` names an installed release (version 6).
"""

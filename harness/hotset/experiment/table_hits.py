"""Hit ratios by table over one run, where the tier counts its regions of itself.

hotset's own engine does. The kernel's tiers would have to be told to (`hotset heat start`),
which costs the machine a little at every request: an arm that is compared with others goes without.
"""

from __future__ import annotations

from contextlib import closing

from hotset.databases.base import Unavailable
from hotset.hitratio import attribution, region_counters
from hotset.hitratio.heat import Reading, Tally, difference, total
from hotset.hitratio.tracepoints import NotCountedError
from hotset.reports.model.document import Workload
from hotset.reports.model.windows import Part
from hotset.tier import kinds
from hotset.tpcc import schema as tpcc
from hotset.tpch import schema as tpch

from .site.arms import Placed
from .site.context import Site

_KEPT = 24
_IMPLIED = ("public", tpcc.SCHEMA, tpch.SCHEMA)
"""A run has one workload, in one of these."""
_REST = "(all others)"


def begin(placed: Placed) -> Reading | None:
    """The counters before a run; None where nothing counts, or only when it is told to."""
    tier = placed.tier
    if tier is None or kinds.kind_of_name(tier.kind).is_told_to_count:
        return None
    try:
        return region_counters.find_counters(tier).read()
    except NotCountedError:
        return None


def since(site: Site, placed: Placed, workload: Workload, before: Reading | None) -> list[Part]:
    """Count the requests to each table and index since then, the busiest first."""
    if before is None or placed.tier is None:
        return []
    after = region_counters.find_counters(placed.tier).read()
    device = placed.tier.create()
    below = attribution.mount_point(site.machine, device)
    with closing(placed.server.database(workload).administer()) as server:
        label = server.labels("table", site.machine, below)
    if isinstance(label, Unavailable):
        return []
    files = attribution.files(site.machine, device)
    owners = attribution.group_by(files, lambda path: _table_name(label(path)))
    gained = difference(before.tallies, after.tallies)
    rows = attribution.split(gained, after.grid, owners)
    rest = [tally for _, tally in rows[_KEPT:]]
    return [
        *(_part(name, tally) for name, tally in rows[:_KEPT]),
        *([_part(_REST, total(rest))] if rest else []),
    ]


def _table_name(relation: str) -> str:
    """Name a table or an index for a report; the server's own share a name.

    >>> _table_name("hotset_tpcc.stock"), _table_name("public.customer"), _table_name("(log)")
    ('stock', 'customer', '(log)')
    >>> _table_name("pg_catalog.pg_proc")
    '(system tables)'
    """
    if relation.startswith("pg_catalog."):
        return "(system tables)"
    schema, _, name = relation.partition(".")
    return name if schema in _IMPLIED else relation


def _part(name: str, tally: Tally) -> Part:
    return Part(
        name=name,
        reads=tally.reads,
        writes=tally.writes,
        hit_ratio=tally.ratio,
        read_hit_ratio=tally.read_ratio,
        write_hit_ratio=tally.write_ratio,
    )

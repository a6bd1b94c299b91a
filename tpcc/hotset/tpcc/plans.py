"""Plan flips: whether the planner changed its mind about a statement within a run.

`sql/<engine>/plans.sql` holds the statements of the procedures for which there is a choice. Their
generic plans, which the users' sessions have, are asked for before and after a run (EXPLAIN, which
runs nothing); what is compared is their shape: nodes, tables and indexes, without costs.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from hotset.reports.model.windows import PlanChange, Steadiness

from .database import Database
from .schema import batches, has_statement

_LABEL = re.compile(r"-- (?P<kind>[a-z-]+): (?P<what>.+)")
_PREPARED = re.compile(r"^PREPARE (?P<name>\w+) \((?P<types>[^)]*)\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    """kind  of transaction, such as ``stock_level``
    what  it does, in words
    """

    kind: str
    what: str


def shapes(database: Database) -> dict[Statement, str]:
    """The plan of each statement; empty where an engine has no such file.

    Raises `DatabaseError`.
    """
    if not has_statement(database.engine, "plans"):
        return {}
    by_statement = {}
    with closing(database.session()) as session:
        for batch in batches(database.engine, "plans"):
            label, prepared = _LABEL.match(batch), _PREPARED.search(batch)
            assert label is not None
            assert prepared is not None
            session.script(batch)
            arguments = ", ".join(["NULL"] * len(prepared["types"].split(",")))
            rows = session.query(f"EXPLAIN (FORMAT JSON) EXECUTE {prepared['name']} ({arguments})")
            statement = Statement(label["kind"].replace("-", "_"), label["what"])
            by_statement[statement] = shape(_plan(rows[0][0]))
    return by_statement


def _plan(cell: object) -> dict[str, Any]:
    """Parse the plan of one statement; drivers hand over JSON as text or parsed."""
    read = json.loads(cell) if isinstance(cell, str) else cell
    assert isinstance(read, list)
    plan: dict[str, Any] = read[0]["Plan"]
    return plan


def shape(plan: Mapping[str, Any]) -> str:
    """
    >>> shape({"Node Type": "Limit", "Plans": [
    ...     {"Node Type": "Index Scan", "Index Name": "stock_pkey", "Relation Name": "stock"}]})
    'Limit (Index Scan stock_pkey)'
    >>> shape({"Node Type": "Seq Scan", "Relation Name": "stock"})
    'Seq Scan stock'
    """
    named = plan.get("Index Name") or plan.get("Relation Name")
    words = f"{plan['Node Type']} {named}" if named else str(plan["Node Type"])
    below = [shape(node) for node in plan.get("Plans", ())]
    return f"{words} ({', '.join(below)})" if below else words


def flips(
    before: Mapping[Statement, str],
    after: Mapping[Statement, str],
    steadiness: Sequence[Steadiness],
) -> list[PlanChange]:
    """The statements whose plans differ, with what their kind's latency did."""
    rounds = {
        verdict.of: verdict.rounds for verdict in steadiness if verdict.measure == "latency_ms"
    }
    return [
        PlanChange(
            kind=statement.kind,
            what=statement.what,
            before=shape_before,
            after=after[statement],
            latency_ms=_ends(rounds.get(statement.kind)),
        )
        for statement, shape_before in before.items()
        if after.get(statement, shape_before) != shape_before
    ]


def _ends(rounds: Sequence[float] | None) -> tuple[float, float] | None:
    return (rounds[0], rounds[-1]) if rounds else None

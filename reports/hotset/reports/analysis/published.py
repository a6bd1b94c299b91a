"""Published figures beside measured ones, laid out as such tests are published: before, after,
factor.

Of TPC-C's figures NOPM alone is compared: new orders mean the same everywhere. TPM is what the
server counts as a transaction: SQL Server's are batch requests (4.6 for each new order of the test
of 2014), hotset's are commits (2.2).
"""

from __future__ import annotations

from hotset.core import words

from ..model.document import RunDocument
from . import answer, power

COLUMNS = (
    "value",
    "published before",
    "after",
    "factor",
    "measured before",
    "after",
    "factor",
)


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """A row per figure that the published test has; empty where the experiment names none."""
    published = document.experiment.published
    if published is None:
        return []
    tpcc = {arm.name: arm for arm in answer.arms(document)}
    tpch = {arm.name: arm for arm in power.arms(document) if arm.complete}
    before, after = answer.COMPARED
    lines = []
    for name, figure, measured in (
        ("NOPM", published.nopm, {name: arm.rate for name, arm in tpcc.items()}),
        ("22 queries, s", published.queries_s, {name: arm.total_s for name, arm in tpch.items()}),
    ):
        if figure is not None:
            faster_is_less = name.endswith(", s")
            lines.append(
                (
                    name,
                    *_three(figure.before, figure.after, faster_is_less),
                    *_three(measured.get(before), measured.get(after), faster_is_less),
                )
            )
    if published.hit_ratio and after in tpcc:
        ratio = words.percent(tpcc[after].hit_ratio)
        lines.append(("hit ratio", "", published.hit_ratio, "", "", ratio, ""))
    return lines


def notes(document: RunDocument) -> list[str]:
    """List what the published test has and the table leaves out, with the reason."""
    published = document.experiment.published
    if published is None or published.tpm is None:
        return []
    before, after = words.count(published.tpm.before), words.count(published.tpm.after)
    return [
        f"The published test also gives {before} and {after} TPM. They are not compared: TPM is"
        " what a server counts as a transaction (SQL Server: batch requests; here: commits). Only"
        " new orders (NOPM) mean the same in both."
    ]


def _three(before: float | None, after: float | None, less_is_faster: bool) -> tuple[str, ...]:
    if not before or not after:
        return words.count(before), words.count(after), words.ABSENT
    gain = before / after if less_is_faster else after / before
    return words.count(before), words.count(after), words.factor(gain)

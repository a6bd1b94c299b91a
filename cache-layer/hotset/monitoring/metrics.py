"""A tier's counters as OpenMetrics text, for a textfile collector.

https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md: a family's lines
together, counters end in ``_total``, ``# EOF`` at the end. What a kind of tier does not count has
no line: a scraper must not take it for zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """One line; a value of None is left out."""

    labels: Labels
    value: float | None


@dataclass(frozen=True, slots=True)
class Family:
    """All lines of one name. ``kind``: ``counter`` (its lines get ``_total``) or ``gauge``."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]
    unit: str = ""


def text(families: Iterable[Family]) -> str:
    """The whole exposition.

    >>> print(text([Family("hits", "counter", "Hits.", (Sample({"op": "read"}, 3),))]), end="")
    # TYPE hits counter
    # HELP hits Hits.
    hits_total{op="read"} 3
    # EOF
    """
    lines: list[str] = []
    for family in families:
        known = [sample for sample in family.samples if sample.value is not None]
        if not known:
            continue
        lines.append(f"# TYPE {family.name} {family.kind}")
        if family.unit:
            lines.append(f"# UNIT {family.name} {family.unit}")
        lines.append(f"# HELP {family.name} {_escape(family.help)}")
        end = "_total" if family.kind == "counter" else ""
        lines += [
            f"{family.name}{end}{_labels(sample.labels)} {sample.value!r}" for sample in known
        ]
    return "".join(line + "\n" for line in (*lines, "# EOF"))


def _labels(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

"""The Grafana dashboard asks for nothing that hotset does not write."""

from __future__ import annotations

import json
import re
from typing import Any

from hotset.core.paths import repository_file
from hotset.monitoring import metrics, tier_metrics
from hotset.monitoring.tier_metrics import Measured
from tests.support.hit_counters import DISK, counters

DASHBOARD: dict[str, Any] = json.loads(repository_file("reports/grafana/hotset.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
NAME = re.compile(r"\bhotset_\w+")


def written() -> dict[str, set[str]]:
    """Every metric of `hotset report metrics`, with its labels."""
    measured = [Measured(DISK, counters(90, 10, 5, 5, 3, 7))]
    found: dict[str, set[str]] = {}
    for line in metrics.text(tier_metrics.families(measured)).splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', rest))
    return found


def test_every_metric_that_is_asked_for_is_written_and_the_other_way_round() -> None:
    variables = [
        one["definition"] for one in DASHBOARD["templating"]["list"] if "definition" in one
    ]
    asked = {name for text in (*EXPRESSIONS, *variables) for name in NAME.findall(text)}
    assert asked == set(written())


def test_every_label_that_is_asked_for_is_written() -> None:
    scraped = {"instance"}
    for text in EXPRESSIONS:
        for name, labels in re.findall(r"(hotset_\w+)\{([^}]*)\}", text):
            assert set(re.findall(r"(\w+)=", labels)) <= written()[name] | scraped


def test_counters_are_asked_for_as_rates() -> None:
    for text in EXPRESSIONS:
        counted = [name for name in NAME.findall(text) if name.endswith("_total")]
        assert len(re.findall(r"rate\(hotset_\w+_total\{", text)) == len(counted)
        assert text.count("(") == text.count(")")


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    cells: set[tuple[int, int]] = set()
    for panel in PANELS:
        at = panel["gridPos"]
        own = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not own & cells
        assert at["x"] + at["w"] <= 24
        cells |= own

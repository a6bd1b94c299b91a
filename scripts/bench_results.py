"""Where a measurement's result goes: standard output, and a folder that can be published."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy import stats  # type: ignore[import-untyped]


def computer() -> str:
    """What it was measured on, and how busy that was before."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return (
        f"{os.cpu_count()} cores of {cpu}, Linux {platform.release()}, {time.strftime('%Y-%m-%d')};"
        f" load before it began: {os.getloadavg()[0]:.1f}"
    )


def of_pairs(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """The mean ratio of what was measured with to what was measured without it, and its 95 %
    interval: Student's t of the pairs' logarithms."""
    logs = [math.log(with_it / without) for without, with_it in pairs]
    mean, spread = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    reach = float(stats.t.ppf(0.975, len(logs) - 1)) * spread
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


def tell(markdown: str, data: dict[str, Any], name: str, publish: Path | None) -> None:
    """Print the text; with a folder, write it and the numbers there, as DATE-NAME/README.md and
    `NAME.json`."""
    print(markdown)
    if publish is None:
        return
    folder = publish / f"{time.strftime('%Y%m%d')}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(markdown + "\n")
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    print(f"\nwritten: {folder}")

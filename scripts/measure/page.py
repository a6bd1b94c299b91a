"""The page of a measurement: Markdown and numbers, to standard output and where it is published."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Page:
    """The result of a measurement.

    :ivar name: of the folder below the one where it is published, after the date.
    :ivar setup: the measured system; the computer follows it.
    :ivar body: tables.
    """

    name: str
    title: str
    claim: str
    setup: str
    body: str
    data: dict[str, Any]

    def markdown(self, options: argparse.Namespace) -> str:
        setup = f"{self.setup} {options.computer}. Again: `scripts/bench.sh {options.case}`."
        return f"# {self.title}\n\n{self.claim}\n\n{setup.strip()}\n\n{self.body}"


def computer() -> str:
    """Describe the computer, and how busy it is beforehand."""
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


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format as Markdown; every column but the first has numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def publish(page: Page, options: argparse.Namespace) -> None:
    """Print it and, with ``--publish``, write it with its numbers and the options."""
    settings = {key: value for key, value in vars(options).items() if key != "publish"}
    write(page.name, page.markdown(options), settings | page.data, options)


def write(name: str, markdown: str, data: dict[str, Any], options: argparse.Namespace) -> None:
    """Print the text; with ``--publish FOLDER``, write it and the numbers there, too, as
    DATE-NAME/README.md and NAME.json."""
    print(markdown, flush=True)
    if options.publish is None:
        return
    folder = options.publish / f"{time.strftime('%Y%m%d')}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(markdown + "\n")
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    print(f"\nwritten: {folder}")

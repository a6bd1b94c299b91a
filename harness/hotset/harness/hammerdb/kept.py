"""Where HammerDB's script, output and record stay when no experiment keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from hotset.cachelayer.paths import data_dir
from hotset.harness.archive import new_folder
from hotset.harness.progress import Reporter


@contextmanager
def task(report: Reporter, name: str, title: str) -> Iterator[Path]:
    """A step of the work with a new folder of its own, which goes again if nothing came into it."""
    folder = new_folder(data_dir() / "hammerdb", name, datetime.now(UTC), mode=0o700)
    report.say(f"HammerDB's script, output and record: {folder}")
    try:
        with report.task(title):
            yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()

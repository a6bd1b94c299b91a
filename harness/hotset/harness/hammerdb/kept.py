"""Where HammerDB's script, output and record stay when no experiment keeps them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hotset.cachelayer.paths import data_dir


def new_folder(what: str) -> Path:
    """A new folder for one build or run, named after its time."""
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{what}"
    base = data_dir() / "hammerdb"
    base.mkdir(exist_ok=True)
    for number in range(1, 100):
        folder = base / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"{base / stamp} and a hundred like it")

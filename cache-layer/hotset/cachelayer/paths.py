"""Where hotset keeps things, after the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """Things that can be made again: the lab's image, loaded databases, calibrations."""
    return _folder("XDG_CACHE_HOME", ".cache")


def data_dir() -> Path:
    """Things to keep: the archive of runs."""
    return _folder("XDG_DATA_HOME", ".local/share")


def state_dir() -> Path:
    """What is up now: the lab's lock, its log files and the list of what must be taken down."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    # The specification: a relative path in the variable is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / default
    folder = root / "hotset"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def repository_file(name: str) -> Path:
    """A file that ships with hotset (``experiments/demo.toml``), in a checkout or installed."""
    checkout = Path(__file__).resolve().parents[3] / name
    return checkout if checkout.exists() else Path(__file__).resolve().parents[1] / "harness" / name

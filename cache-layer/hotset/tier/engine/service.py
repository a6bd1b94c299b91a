"""Where the cache engine of a disk keeps what it needs on its machine. What starts it there and
keeps it at work is ``hotset-boot``'s (``boot/src/devices/engine.rs``)."""

from __future__ import annotations

from pathlib import PurePosixPath

RUNTIME = PurePosixPath("/run/hotset/engine")
SCRIPTS = PurePosixPath("/etc/hotset/engine")


def control_of(disk: str) -> PurePosixPath:
    """The engine's control socket."""
    return RUNTIME / disk / "control"


def witness_of(disk: str) -> PurePosixPath:
    """Where an engine says, until the computer stops, that both devices have all it wrote."""
    return RUNTIME / disk / "control.witness"


def script_of(disk: str) -> PurePosixPath:
    """Return the script that starts the engine, and reports whether it is there."""
    return SCRIPTS / f"{disk}.sh"


def shares_of(disk: str) -> PurePosixPath:
    """Where the engine keeps what is pinned, excluded and shared."""
    return SCRIPTS / f"{disk}.shares.json"

"""The live lab of this computer, of which there is one: tests that start it take turns."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hotset.experiment.site import live

ON_ONE_LAB = [
    pytest.mark.lab,
    pytest.mark.xdist_group("live"),
    pytest.mark.skipif(live.lacking() is not None, reason=live.lacking() or ""),
]


@contextmanager
def one_lab() -> Iterator[None]:
    """Nobody else's lab is up, and none is afterwards."""
    turn = Path(tempfile.gettempdir()) / "hotset-tests-lab.lock"
    with turn.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if Path("/dev/hotset/lab").exists():
            pytest.skip("this computer has a lab up")
        try:
            yield
        finally:
            live.take_down(print)

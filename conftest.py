"""Settings for the tests of all folders."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A busy computer is no failure: what must be fast is held against a benchmark, not a test's clock.
settings.register_profile("any-computer", deadline=None)
settings.load_profile("any-computer")
# A shell starts what runs in the background with Ctrl-C ignored, and so would all that we start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Whoever ends the tests, as a limit does, has them take down what they began, as Ctrl-C has.
signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` collects the lab's from folders of this name alone, which takes seconds less."""
    for item in items:
        if item.get_closest_marker("lab") and item.path.parent.name != "lab":
            raise pytest.UsageError(f"{item.nodeid}: a test of the lab stands in a folder `lab`")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Disks that this computer has, or that tests of the lab make beside these, are not seen."""
    if not any(item.get_closest_marker("lab") for item in session.items):
        _hide(LABELS)


LABELS = "/etc/hotset"
_CLONE_NEWNS, _MS_PRIVATE_BELOW = 0x20000, 0x44000


def _hide(folder: str) -> None:
    """An empty folder in its place, for this process and those it starts; only root can do that."""
    libc = ctypes.CDLL(None)
    if os.geteuid() != 0 or libc.unshare(_CLONE_NEWNS) != 0:
        return
    Path(folder).mkdir(exist_ok=True)
    libc.mount(b"none", b"/", None, _MS_PRIVATE_BELOW, None)
    libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, None)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A command that ran in the tests' process and was interrupted ignores Ctrl-C afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)

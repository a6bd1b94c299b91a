"""The virtual machine for what only it can show (tracing, what bcache holds): up to a minute goes
by until one with an emulated CPU is up, so one is shared by all tests of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from hotset.core.units import Bytes
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec
from tests.own_lab import SharedLab

GROUP = "emulated"
"""Its tests go to one of the workers that share a run, and are begun first: they take longest.
So long that they wait for the night."""
MIB = 1024**2


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before pytest-xdist reads the groups; the large ones come first, or all would wait for the
    last of them."""
    theirs = [item for item in items if "emulated_lab" in getattr(item, "fixturenames", ())]
    for item in theirs:
        item.add_marker(pytest.mark.xdist_group(GROUP))
        item.add_marker(pytest.mark.night)
    others = [item for item in items if item not in theirs]
    for item in others:
        if item.get_closest_marker("lab") and not item.get_closest_marker("xdist_group"):
            _group(item)
    sizes = Counter(map(_group_of, others))
    others.sort(key=lambda item: sizes[_group_of(item)] if _group_of(item) else 0, reverse=True)
    items[:] = theirs + others


def _group_of(item: pytest.Item) -> str:
    found = item.get_closest_marker("xdist_group")
    return str(found.args[0]) if found else ""


def _group(item: pytest.Item) -> None:
    """What a file's tests share, a machine mostly, each worker that had one of them would make."""
    known = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    if any(found[-1].scope == "module" for found in known):
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups are marks on a test's name, which pytest 9.1 has no more for pytest-xdist 3.8: without
    them each worker would make every machine."""
    if not getattr(session.config.option, "loadgroup", False):
        return
    for item in session.items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: pytest-xdist knows no groups with this pytest")


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedLab]:
    spec = LabSpec("vm", 2, Bytes(1024 * MIB), Bytes(832 * MIB))
    with SharedLab(tmp_path_factory, spec) as shared:
        yield shared


@pytest.fixture
def emulated_lab(emulated: SharedLab) -> Iterator[Lab]:
    """With an empty flash; what a test attaches is detached after it."""
    lab = emulated.lab()
    with lab.cleanup.part():
        empty = f"blkdiscard --force --zeroout {labs.FLASH_DISK}; udevadm settle"
        lab.machine.run(["sh", "-ec", empty])
        yield lab

"""Plans that did not come to their end: what is kept of them, and what is told."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import NoReturn

import pytest

from hotset.block.extents import Run
from hotset.block.programs import InUseError
from hotset.core import errors
from hotset.core.errors import HotsetError
from hotset.core.paths import data_dir
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes
from hotset.disk.flash_devices import AttachedDisk, Disk, FlashDevice
from hotset.tier.base import TierSpec, WarmupFailedError
from hotset.warmup import plan_store
from hotset.warmup.plan_store import SavedPlan
from tests.fake_machine import FakeMachine

SPEC = TierSpec("writeback", "smq", Bytes(65536), Bytes(2**20), Bytes(2**26), Bytes(0))
DISK = Disk("pg", "dm-cache", "oltp", PurePosixPath("/dev/origin"), SPEC, (), ())
FLASH = FlashDevice("main", PurePosixPath("/dev/flash"), Bytes(2**26), (), (DISK,))
PLAN = SavedPlan(
    *("one", "2026-11-21T07:00:00+00:00", "local", "pg", "/dev/origin", ("heat",)),
    *(Bytes(65536), (Run(Blocks(3), Blocks(100)),), "auto", 50, 0.9, None),
    left_out=Bytes(0),
)


class Failing:
    """A tier that is up, and ends a warm-up so."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def may_be_filled(self) -> bool:
        return True

    def fill(self, filling: object) -> NoReturn:  # noqa: ARG002
        raise self._error


def performed(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AttachedDisk, "tier", Failing(error))
    plan_store.perform(AttachedDisk(FakeMachine(), FLASH, DISK), PLAN, Reporter(quiet=True))


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (InUseError("/dev/mapper/pg is mounted"), "planned"),
        (WarmupFailedError("a block differs"), "failed"),
    ],
)
def test_what_failed_says_how_it_goes_on_to_every_caller(
    error: HotsetError, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a note with a command line in it, of which a caller of the API has none."""
    with pytest.raises(HotsetError) as failed:
        performed(error, monkeypatch)
    assert plan_store.find("one").state == state
    assert errors.of_command_line(failed.value).endswith(
        "; to continue with what is missing: `hotset warmup run --resume one`"
    )
    assert errors.of_api(failed.value).endswith("warmup run with resume=one")


def test_what_was_interrupted_is_kept_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt) as ended:
        performed(KeyboardInterrupt(), monkeypatch)
    assert plan_store.find("one").state == "interrupted"
    assert "plan one can be resumed" in ended.value.__notes__[0]


@pytest.mark.parametrize(
    "change",
    [{"schema_version": 2}, {"schema_version": 0}, {"hereafter": 1}, {"targets": None}, {}],
    ids=str,
)
def test_a_plan_that_another_version_saved_is_refused_with_both_ways_out(
    change: dict[str, object],
) -> None:
    """A field more was a TypeError in a traceback."""
    plan_store.save(PLAN)
    (path,) = (data_dir() / "warmups").glob("*.json")
    kept = json.loads(path.read_text())
    if not change:
        # As before the first release: what had no room would count as nothing.
        del kept["left_out"]
    path.write_text(json.dumps({**kept, **change}))
    before = path.read_text()
    for look in (plan_store.every, lambda: plan_store.find("last")):
        with pytest.raises(HotsetError, match=r"one\.json.*another version.*move .* away.* again"):
            look()
    assert path.read_text() == before

"""The order of the arms, and the name of the saved database image."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.bench.thresholds import ThresholdMissedError
from hotset.core.machines.base import Command, PrerequisiteMissingError, Result
from hotset.core.machines.local import Local
from hotset.core.paths import repository_file
from hotset.core.progress import Reporter
from hotset.core.sql import LoadFailed
from hotset.core.units import Bytes
from hotset.experiment import recorded, sequence
from hotset.experiment.file.spec import Spec, read
from hotset.experiment.journal import Journal
from hotset.experiment.recorded import Recorded
from hotset.experiment.sequence import Turn, order
from hotset.experiment.site import base_image
from hotset.lab.calibrate import CalibratedLine
from hotset.load.record import WindowOptions
from hotset.reports.archive import Archive
from hotset.reports.model.base import ArmName
from hotset.reports.model.windows import Condition, Preparation, Repeat
from hotset.tpcc.data.consistency import Violated
from tests import documents

DEMO = repository_file("experiments/demo.toml")
ARMS: list[ArmName] = ["baseline", "accelerated", "all-flash"]


def spec(*overrides: str) -> Spec:
    return read(DEMO, overrides)


def test_each_repeat_but_the_last_ends_with_what_the_run_came_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "_OTHERS_S", 0.01)
    wanted, said = spec("repeats=2"), list[str]()
    journal = Journal.begin(Archive(tmp_path / "runs"), wanted)
    site: Any = SimpleNamespace(spec=wanted, report=SimpleNamespace(say=said.append))
    work, ended = Recorded(journal), dict[Turn, list[str]]()
    for turn in sequence.turns(wanted):
        with work.turn(site, turn):
            number = turn.repeat
            journal.add_repeat(turn.arm, documents.repeat(turn.arm, number, 400, duration_s=3))
            journal.add_power_run(turn.arm, documents.power_run(turn.arm, number))
            said.clear()
        ended[turn] = said.copy()
    (lines,) = filter(None, ended.values())
    assert lines == ended[Turn("all-flash", 1, ("tpcc", "tpch"))]
    timed, queries, left = lines
    assert "(one repeat: how far runs lie apart is not known)" in timed
    assert "one repeat" in queries
    assert left.startswith("1 more repeat, about ")


def prepared(*_: object) -> Preparation:
    """In place of some seconds of load."""
    return Preparation(users=16, seconds=4, limit_s=4)


@given(
    st.integers(1, 9),
    st.permutations(ARMS).flatmap(lambda arms: st.sampled_from([arms, arms[:2], arms[:1]])),
)
def test_arms_are_interleaved(repeats: int, arms: list[ArmName]) -> None:
    wanted = list(order(spec(f"repeats={repeats}", f"arms={arms}")))
    assert len(wanted) == len(set(wanted)) == repeats * len(arms)
    for repeat in range(1, repeats + 1):
        start = (repeat - 1) * len(arms)
        found = wanted[start : start + len(arms)]
        assert found == [(repeat, arm) for arm in (arms if repeat % 2 else arms[::-1])]


@pytest.mark.parametrize("when", ["load", "every-arm"])
def test_an_arm_that_breaks_the_database_fails_the_run_where_arms_are_checked(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Condition(number=3, title="gaps", holds=False, violations=1, examples=((1, 2),))
    asked: list[object] = []
    placed = SimpleNamespace(
        warmed=None, tier=None, server=SimpleNamespace(database=lambda name: name)
    )
    monkeypatch.setitem(sequence.ARMS, "baseline", lambda *_: nullcontext(placed))
    monkeypatch.setattr(recorded, "prepare", prepared)
    monkeypatch.setattr(recorded, "measure", lambda *_: documents.repeat("baseline", 1, 100, 5))
    monkeypatch.setattr(recorded, "busy", lambda *_: 0.0)
    monkeypatch.setattr(
        recorded.checks, "check", lambda database, *_: asked.append(database) or [broken]
    )
    site: Any = SimpleNamespace(
        spec=spec(f"tpcc.check={when}"),
        report=Reporter(quiet=True),
        tier=SimpleNamespace(block=4096),
        buffers=lambda _: 0,
    )
    kept: list[object] = []
    journal: Any = SimpleNamespace(
        add_repeat=lambda *repeat: kept.append(repeat),
        has=lambda *_: False,
        phase=nullcontext,
    )
    work, turn = Recorded(journal), Turn("baseline", 1, ("tpcc",))
    if when == "load":
        sequence.take(site, turn, work)
        assert (asked, len(kept)) == ([], 1)
    else:
        with pytest.raises(Violated, match="condition 3"):
            sequence.take(site, turn, work)
        assert (asked, kept) == (["tpcc"], [])


@pytest.mark.parametrize("warm", [False, True])
def test_every_arm_is_prepared_alike_and_its_windows_tell_how(
    warm: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a cache is held against the hit ratio: there is none in the baseline."""
    wanted = spec("tpcc.users=[1, 16]", "repeats=1")
    journal = Journal.begin(Archive(tmp_path), wanted)
    calls: list[tuple[object, ...]] = []

    def prepare(site: Any, _: Any, run: Any, *rest: Any) -> Preparation:  # noqa: ANN401
        *given, on_probe = rest
        calls.append((site.spec, run.want.most_users, *given))
        on_probe(0.2, 4.0)
        return Preparation(users=16, seconds=9, limit_s=24, level=None)

    def measure(*given: Any) -> Repeat:  # noqa: ANN401
        window = documents.repeat("baseline", 1, 100, 5)
        return window.model_copy(update={"users": given[-1].users})

    monkeypatch.setattr(recorded, "prepare", prepare)
    monkeypatch.setattr(recorded, "measure", measure)
    site: Any = SimpleNamespace(
        spec=wanted,
        report=Reporter(quiet=True),
        tier=SimpleNamespace(block=4096),
        buffers=lambda _: 5,
    )
    warmed = SimpleNamespace(
        method="offline", bytes=1, seconds=1.0, mb_per_s=1.0, origin_mb_per_s=1.0,
        sampled_blocks=1, differing_blocks=0,
    )  # fmt: skip
    placed: Any = SimpleNamespace(
        tier=None, warmed=warmed if warm else None, server=SimpleNamespace(database=lambda _: "")
    )
    arm: ArmName = "accelerated" if warm else "baseline"
    turn, work = Turn(arm, 1, ("tpcc",)), Recorded(journal)
    if warm:
        with pytest.raises(ThresholdMissedError, match=r"hit ratio of 20\.0 %"):
            sequence.on_arm(site, turn, placed, work)
        assert journal.document.warmup is not None
        assert journal.document.warmup.probe_seconds == 4
    else:
        sequence.on_arm(site, turn, placed, work)
        (found,) = journal.document.arms
        windows = (*found.repeats, *found.curve)
        assert [one.preparation.seconds for one in windows if one.preparation] == [9, 9]
    assert calls == [(wanted, 16, 5, 1)]


def test_a_curve_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second repeat backwards; what is kept is not measured again."""
    wanted = spec("tpcc.users=[1, 2, 4]", "repeats=2", "tpch.scale=0.05")
    journal = Journal.begin(Archive(tmp_path), wanted)
    asked: list[tuple[int, int, int]] = []

    def window(site: Any, placed: Any, workload: Any, options: WindowOptions) -> Any:  # noqa: ANN401, ARG001
        if (placed.repeat, options.users) == (2, 1) and len(asked) < 6:
            asked.append((0, 0, 0))
            raise KeyboardInterrupt
        asked.append((placed.repeat, options.users, options.seed))
        measured = documents.repeat("baseline", placed.repeat, 100 * options.users, 5)
        return measured.model_copy(update={"users": options.users})

    monkeypatch.setattr(recorded, "prepare", prepared)
    monkeypatch.setattr(recorded, "measure", window)
    site: Any = SimpleNamespace(
        spec=wanted,
        report=Reporter(quiet=True),
        tier=SimpleNamespace(block=4096),
        buffers=lambda _: 0,
    )

    def run(repeat: int) -> None:
        server = SimpleNamespace(database=lambda name: name)
        placed: Any = SimpleNamespace(tier=None, repeat=repeat, warmed=None, server=server)
        sequence.on_arm(site, Turn("baseline", repeat, ("tpcc",)), placed, work)

    work = Recorded(journal)
    second = Turn("baseline", 2, ("tpcc",))

    run(1)
    with pytest.raises(KeyboardInterrupt):
        run(2)
    assert not work.is_done(wanted, second, "tpcc")
    run(2)
    assert work.is_done(wanted, second, "tpcc")
    order_ = [(repeat, users) for repeat, users, _ in asked]
    assert order_ == [(1, 1), (1, 2), (1, 4), (2, 4), (2, 2), (0, 0), (2, 1)]
    assert len({seed for _, _, seed in asked if seed}) == 6
    arm = journal.document.arms[0]
    assert [(one.repeat, one.users) for one in arm.repeats] == [(1, 4), (2, 4)]
    assert [(one.repeat, one.users) for one in arm.curve] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_drift_falls_on_all_arms_alike() -> None:
    """Over an even number of repeats every arm's mean place in the run is the same."""
    places: dict[str, list[int]] = {}
    for at, (_, arm) in enumerate(order(spec("repeats=4"))):
        places.setdefault(arm, []).append(at)
    assert len({sum(one) for one in places.values()}) == 1


@pytest.mark.parametrize(
    "override",
    [
        "tpcc.warehouses=4",
        "tpcc.seed=2",
        "storage.size=2100MiB",
        "tpch.scale=0.05",
        "tier.volume=128MiB",
    ],
)
def test_what_decides_the_content_of_an_image_is_in_its_name(override: str) -> None:
    assert base_image.path_for(spec(override), "uml") != base_image.path_for(spec(), "uml")


@pytest.mark.parametrize("override", ["tpcc.users=5", "tier.cache=64MiB", "repeats=1", "title=x"])
def test_what_does_not_is_not(override: str) -> None:
    assert base_image.path_for(spec(override), "uml") == base_image.path_for(spec(), "uml")


def test_each_ground_has_its_own_image() -> None:
    assert base_image.path_for(spec(), "local") != base_image.path_for(spec(), "uml")
    assert base_image.path_for(spec(), "uml").name.startswith("tpcc-8w-tpch-sf0.04-")
    assert base_image.path_for(spec(), "image") == base_image.path_for(spec(), "uml"), (
        "the same server"
    )


def test_only_a_finished_image_is_used() -> None:
    path = base_image.path_for(spec(), "uml")
    assert base_image.find_saved(path) is None
    path.touch()
    assert base_image.find_saved(path) is None, "its facts are missing: the load did not end"
    facts = {"databases": {"tpcc": {"bytes": 5, "folder": "base/5"}}, "version": "17.6"}
    path.with_suffix(".json").write_text(json.dumps(facts))
    found = base_image.find_saved(path)
    assert found is not None
    assert (found.path, found.size(["tpcc"]), found.version) == (path, 5, "17.6")
    assert found.databases["tpcc"].folder == "base/5"
    path.unlink()
    assert base_image.find_saved(path) is None


def test_a_new_disk_is_sparse_and_is_no_image(tmp_path: Path) -> None:
    path = tmp_path / "tpcc.img"
    building = base_image.new_file(path, spec().storage.size)
    assert building != path
    assert building.stat().st_size == spec().storage.size
    assert building.stat().st_blocks == 0
    assert base_image.find_saved(path) is None


def test_a_disk_without_room_for_the_database_is_named(tmp_path: Path) -> None:
    huge = Bytes(2 * shutil.disk_usage(tmp_path).total)
    with pytest.raises(PrerequisiteMissingError) as refused:
        base_image.new_file(tmp_path / "tpcc.img", huge)
    for word in (str(huge), "storage.size", str(tmp_path), "free some", "XDG_CACHE_HOME"):
        assert word in str(refused.value)
    assert list(tmp_path.iterdir()) == []


class LosesWrites(Local):
    """A computer whose kernel could not write everything (syncfs(2): EIO)."""

    def execute(self, command: Command) -> Result:
        assert command.argv[:2] == ("sync", "--file-system")
        return Result(command.argv, 1, "", "sync: error syncing '/x': Input/output error\n", 0)


def test_an_image_with_lost_writes_is_none(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match=r"lost .*Input/output error.*free: is its disk full\?"):
        base_image._write_out(LosesWrites(), tmp_path)


LOADING = """
import sys
from pathlib import Path
from hotset.core.units import Bytes
from hotset.experiment.site import base_image as saved

building = saved.new_file(Path(sys.argv[1]), Bytes(4096))
assert building.stat().st_size == 4096
sys.exit("the load failed")
"""


def test_a_second_load_leaves_the_first_alone_and_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "tpcc.img"
    first = base_image.new_file(path, Bytes(8))
    first.write_text("half way")
    done = subprocess.run(
        [sys.executable, "-c", LOADING, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == "the load failed\n"
    assert list(tmp_path.iterdir()) == [first]
    assert first.read_text() == "half way"


def test_deviation_is_a_share_of_what_was_asked() -> None:
    assert CalibratedLine("x", "IOPS", asked=200, measured=150).off == -0.25

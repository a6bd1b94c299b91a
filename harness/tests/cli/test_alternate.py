"""``hotset runs alternate``: what a verdict names is what tells."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hotset.databases.postgres.product import PostgresDatabase
from hotset.reports.archive import Archive
from hotset.reports.model.document import RunDocument
from tests import documents
from tests.cli_server import CommandLine, Done

pytestmark = pytest.mark.database
BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


class Shop:
    """A database of somebody's own, and two labels of runs of its script, a day apart."""

    def __init__(self, hotset: CommandLine, database: PostgresDatabase, folder: Path) -> None:
        self._hotset = hotset
        self._secret = {"HOTSET_PASSWORD": database.password}
        self.archive = Archive.default()
        script = folder / "shop.sql"
        script.write_text("SELECT 1;\n")
        dsn = f"host={database.host} port={database.port} user={database.user}"
        words = ["sql", "run", "--script", str(script), "--dsn", f"{dsn} dbname={database.dbname}"]
        words += ["--users", "1", "--rampup", "0", "--duration", "1", "--label", "before"]
        assert self(*words).code == 0
        self.measured = self.archive.load("last")
        for label, day, times in (("before", 1, 1.0), ("after", 2, 1.15)):
            for number in range(3):
                self._keep(label, BEGUN + timedelta(days=day, hours=number), times + number / 200)
        self.archive.remove(self.measured.run)

    def __call__(self, *argv: str, stdin: str = "") -> Done:
        return self._hotset(*argv, stdin=stdin, env=self._secret)

    def _keep(self, label: str, at: datetime, times: float) -> None:
        """The run once more, so many times as fast."""
        (arm,) = self.measured.arms
        (window,) = arm.repeats
        assert self.measured.measurement is not None
        update = {"opened_at": at, "tpm": 60_000 * times}
        changes = {
            "run": self.archive.new("sql", at),
            "started_at": at,
            "measurement": self.measured.measurement.model_copy(update={"label": label}),
            "arms": (arm.model_copy(update={"repeats": (window.model_copy(update=update),)}),),
        }
        self.archive.save(self.measured.model_copy(update=changes))

    def labelled(self) -> list[str | None]:
        return [row.label for row in self.archive.listing()[::-1]]


@pytest.fixture
def shop(hotset: CommandLine, database: PostgresDatabase, tmp_path: Path) -> Shop:
    return Shop(hotset, database, tmp_path)


def named(told: str) -> list[str]:
    """The words of the command that a verdict names."""
    (line,) = (line for line in told.splitlines() if "hotset runs alternate" in line)
    return shlex.split(line[line.index("hotset runs alternate") :])[1:]


def state(folder: Path, code: int = 0) -> tuple[Path, Path]:
    """A program that brings a server into a state, and what it notes of that."""
    program, seen = folder / "state.sh", folder / "seen"
    program.write_text(f'#!/bin/sh\necho "$1" >> {seen}\nexit {code}\n')
    program.chmod(0o755)
    return program, seen


def states(times: int) -> Sequence[str]:
    return ["before", "after"] * times


def test_the_command_that_a_verdict_names_measures_in_turn_and_compares(
    shop: Shop, tmp_path: Path
) -> None:
    """15 % between two days is not known; before, nothing could be typed that tells."""
    compared = shop("runs", "compare", "before", "after")
    assert "To tell it from better and worse days, measure in turn:" in compared.out
    program, seen = state(tmp_path)
    done = shop(*named(compared.out), "--switch", str(program))
    assert done.code == 0, done.err
    assert seen.read_text().split() == states(3)
    assert [one.rpartition("-in-turn-")[0] for one in shop.labelled()[-6:]] == states(3)
    assert re.search(r"after-in-turn-\S+ against before-in-turn-", done.out)
    assert "measure in turn" not in done.out
    assert len(set(shop.labelled()[:-6])) == 2, "what was there stays"


def test_the_command_that_a_trend_names_runs(shop: Shop) -> None:
    for day in range(10, 14):
        shop._keep("nightly", BEGUN + timedelta(days=day), 1.0)
    told = shop("runs", "trend")
    words = named(told.out.replace("\n", " "))
    assert words[:4] == ["runs", "alternate", "before", "after"]
    done = shop(*words, "--times", "2", stdin="\n" * 4)
    assert done.code == 0, done.err
    assert done.err.count("then press Enter") == 4
    assert [one.rpartition("-in-turn-")[0] for one in shop.labelled()[-4:]] == states(2)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("before",), "before: name two states, such as before after"),
        (("before", "before"), "name two states"),
        (("before", "gone"), "no run is labelled gone"),
        (("before", "after", "--like", "19990101"), "no run"),
        (("before", "after", "--switch", "nowhere.sh"), "nowhere.sh is no program"),
        (("before", "after"), "the question had no answer"),
    ],
)
def test_what_cannot_be_measured_in_turn_is_told_before_it_begins(
    shop: Shop, argv: tuple[str, ...], said: str
) -> None:
    before = shop.labelled()
    done = shop("runs", "alternate", *argv)
    assert done.code != 0
    assert said in done.err
    assert shop.labelled() == before


def test_a_server_whose_state_is_not_known_is_not_measured(shop: Shop, tmp_path: Path) -> None:
    program, _ = state(tmp_path, code=7)
    done = shop("runs", "alternate", "before", "after", "--switch", str(program))
    assert done.code != 0
    assert "before ended with code 7: the server's state is not known" in done.err


def test_an_experiment_measures_its_arms_in_turn_by_itself(shop: Shop) -> None:
    run = shop.archive.new("demo", BEGUN + timedelta(days=20))
    demo: RunDocument = documents.complete(5).model_copy(update={"run": run})
    shop.archive.save(demo)
    done = shop("runs", "alternate", "before", "after", "--like", run)
    assert done.code != 0
    assert "is an experiment, which measures its arms in turn by itself" in done.err

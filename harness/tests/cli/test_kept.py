"""Measurements of a real database as runs of the archive: kept, listed, shown, compared."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hotset.databases.postgres.product import PostgresDatabase
from tests.cli_server import CommandLine, Done
from tests.postgres_cluster import PASSWORD, Cluster

pytestmark = pytest.mark.database
SHORT = ("--rampup", "0", "--duration", "1")
SCHEMA = "CREATE TABLE item AS SELECT n AS id FROM generate_series(1, 1000) n"
SEARCH = "\\set low random(1, 900)\nSELECT count(*) FROM item WHERE id BETWEEN :low AND :low + 9;\n"


class Shop:
    """The command line, and a database of somebody's own."""

    def __init__(self, hotset: CommandLine, database: PostgresDatabase, folder: Path) -> None:
        self.hotset = hotset
        self.database = database
        self.folder = folder
        self.data = folder / "data"
        self.script("search", SEARCH)

    def script(self, name: str, text: str) -> None:
        (self.folder / f"{name}.sql").write_text(text)

    def __call__(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        **how: Any,  # noqa: ANN401
    ) -> Done:
        database = self.database
        env = {
            **(env or {}),
            "HOTSET_DSN": f"host={database.host} port={database.port} user={database.user}"
            f" dbname={database.dbname}",
            "HOTSET_PASSWORD": PASSWORD,
            "XDG_DATA_HOME": str(self.data),
        }
        return self.hotset(*argv, env=env, **how)

    def measure(self, *more: str, script: str = "search", **how: Any) -> Done:  # noqa: ANN401
        file = str(self.folder / f"{script}.sql")
        return self("sql", "run", "--script", file, "--users", "2", *SHORT, *more, **how)

    def runs(self) -> list[dict[str, Any]]:
        listed = self("runs", "list", "--format", "json")
        assert listed.code == 0, listed.err
        found: list[dict[str, Any]] = json.loads(listed.out)["runs"]
        return found

    def shown(self, run: str = "last") -> dict[str, Any]:
        done = self("runs", "show", run, "--format", "json")
        assert done.code == 0, done.err
        found: dict[str, Any] = json.loads(done.out)
        return found


@pytest.fixture
def shop(hotset: CommandLine, cluster: Cluster, tmp_path: Path) -> Iterator[Shop]:
    with cluster.fresh("kept") as database:
        with closing(database.session()) as session:
            session.script(SCHEMA)
        yield Shop(hotset, database, tmp_path)


def test_a_measurement_is_a_run_of_the_archive(shop: Shop) -> None:
    """It was printed and gone."""
    done = shop.measure("--label", "before", "--format", "json")
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    (row,) = shop.runs()
    assert (row["run"], row["state"]) == (printed["run"], "complete")
    assert (row["measurement"], row["label"], row["unit"]) == ("sql run", "before", "TPS")
    kept = shop.shown()
    assert kept == printed
    assert printed["measurement"]["kept"]
    (arm,) = kept["arms"]
    (window,) = arm["repeats"]
    assert (arm["name"], window["users"]) == ("measured", 2)
    assert row["value"] == pytest.approx(window["tpm"] / 60)
    assert kept["experiment"]["scripts"][0]["text"] == SEARCH
    # Nobody sampled the server: what that would tell is unknown, and no 0.
    assert (window["server_cpu"], window["hit_ratio"]) == (None, None)
    assert kept["measurement"]["tier_unknown"]
    assert kept["database"]["bytes"] > 0
    assert kept["database"]["buffers_bytes"] > 0


@pytest.mark.night
def test_every_form_of_its_report_says_what_was_measured_and_what_is_not_known(shop: Shop) -> None:
    shop.measure()
    (row,) = shop.runs()
    tps = f"{row['value']:,.0f} TPS"
    shown = shop("runs", "show", "last")
    markdown = shop("report", "last", "--format", "md")
    page = Path(shop("report", "last").out.strip()).read_text()
    for text in (shown.out, markdown.out, page):
        assert tps in " ".join(text.split()), text
        assert "Not known whether the database lay on a tier" in " ".join(text.split())
        assert "baseline was not measured" not in text
        assert "No factor" not in text
        assert "does not show how far two of them lie apart" in " ".join(text.split())
    assert tps in shop("runs", "list").out


def test_no_password_is_in_the_archive(shop: Shop) -> None:
    """Nor in the audit log, which kept a DSN that had been refused for the one in it."""
    for more in ((), ("--until-steady", "x")):
        shop.measure(*more)
    wrong = shop.hotset(
        *("sql", "run", "--script", str(shop.folder / "search.sql"), *SHORT),
        *("--dsn", f"postgresql://u:{PASSWORD}@localhost/x"),
        env={"XDG_DATA_HOME": str(shop.data)},
    )
    assert wrong.code == 2
    files = [file for file in shop.data.rglob("*") if file.is_file()]
    assert files
    assert [file for file in files if PASSWORD.encode() in file.read_bytes()] == []


def test_what_is_not_to_be_kept_is_not(shop: Shop) -> None:
    done = shop.measure("--no-keep", "--format", "json")
    printed = json.loads(done.out)
    assert (done.code, printed["measurement"]["kept"]) == (0, False)
    assert printed["arms"][0]["repeats"][0]["tpm"] > 0
    assert shop.runs() == []


def test_a_measurement_that_is_refused_leaves_no_run(shop: Shop) -> None:
    shop.script("wrong", "\\nosuch\n")
    assert shop.measure(script="wrong").code == 2
    assert shop.measure("--sample", "nowhere").code == 2
    assert shop.runs() == []


def test_a_measurement_that_fails_is_kept_as_failed(shop: Shop) -> None:
    shop.script("fails", "SELECT 1/0;\n")
    done = shop.measure("--max-errors", "1", script="fails")
    assert done.code == 4
    kept = shop.shown()
    assert (kept["state"], shop.runs()[0]["state"]) == ("failed", "failed")
    assert "division by zero" in kept["failure"]["text"]
    for form in ("md", "html"):
        assert shop("report", "last", "--format", form).code == 0


@pytest.mark.night
def test_a_measurement_without_a_window_has_a_report_in_every_form(shop: Shop) -> None:
    """The page ended in "no first item"."""
    done = shop.measure("--rampup", "30", interrupt=("progress: 1.0 s", signal.SIGINT))
    assert done.code == 130
    kept = shop.shown()
    assert (kept["state"], kept["arms"]) == ("interrupted", [])
    for form in ("md", "html"):
        assert shop("report", "last", "--format", form).code == 0
    assert "Nothing was measured" in shop("runs", "show", "last").out


def test_a_measurement_that_is_interrupted_is_kept_as_interrupted(shop: Shop) -> None:
    done = shop.measure("--duration", "60", interrupt=("progress: 2.0 s", signal.SIGINT))
    assert done.code == 130, done.err
    kept = shop.shown()
    assert kept["state"] == "interrupted"
    (arm,) = kept["arms"]
    assert 0 < arm["repeats"][0]["duration_s"] < 30
    assert "Measure again" in shop("report", "last", "--format", "md").out


def test_an_archive_that_cannot_be_written_costs_neither_the_result_nor_its_error(
    shop: Shop,
) -> None:
    """Exit code 3, as of an experiment that cannot be kept; a failure keeps its own."""
    folder = shop.data / "hotset"
    folder.mkdir(parents=True)
    (folder / "runs").write_text("in the way")
    done = shop.measure("--format", "json")
    printed = json.loads(done.out)
    assert printed["arms"][0]["repeats"][0]["tpm"] > 0
    assert not printed["measurement"]["kept"]
    assert done.code == 3
    assert "not kept as a run" in done.err
    shop.script("fails", "SELECT 1/0;\n")
    failed = shop.measure("--max-errors", "1", script="fails")
    assert failed.code == 4
    assert "division by zero" in failed.err
    assert "not kept as a run" in failed.err
    assert shop.measure("--no-keep").code == 0


@pytest.mark.night
def test_a_large_archive_is_said_to_be_one_and_nothing_is_deleted(shop: Shop) -> None:
    assert "archive of runs" not in shop.measure().err
    small = {"HOTSET_ARCHIVE_LIMIT": "1KiB"}
    done = shop.measure(env=small)
    assert done.code == 0
    assert "note: the archive of runs has" in done.err
    assert "HOTSET_ARCHIVE_LIMIT" in done.err
    assert len(shop.runs()) == 2
    wrong = shop.measure(env={"HOTSET_ARCHIVE_LIMIT": "much"})
    assert (wrong.code, "HOTSET_ARCHIVE_LIMIT=much" in wrong.err) == (2, True)
    assert len(shop.runs()) == 2


def test_two_measurements_at_once_are_two_runs(shop: Shop) -> None:
    from hotset.bench.kept.measurement import Subject, begin

    del shop
    subject = Subject("sql run", "sql", "two at once", {"sql": {}})
    begun: list[str | None] = []

    def one() -> None:
        kept = begin(True, subject)
        kept.finish("complete", None)
        begun.append(kept.run)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None not in begun
    assert len(set(begun)) == 4


@pytest.mark.night
def test_two_measurements_are_compared_without_claiming_what_two_runs_cannot_show(
    shop: Shop,
) -> None:
    first, second = (json.loads(shop.measure("--format", "json").out)["run"] for _ in range(2))
    done = shop("runs", "compare", first, second, "--format", "json")
    assert done.code == 0, done.err
    (line,) = json.loads(done.out)["lines"]
    assert (line["arm"], line["verdict"], line["ci_low"]) == ("measured", "not known", None)
    told = json.loads(done.out)["differences"]
    assert any("tier found: not known" in one for one in told), "unknown is not the same"
    other = json.loads(shop.measure("--users", "3", "--format", "json").out)["run"]
    refused = shop("runs", "compare", first, other)
    assert refused.code == 2
    assert re.search(r"sql\.users: 2 / 3", refused.err)
    assert shop("runs", "compare", first, other, "--force").code == 0


@pytest.mark.night
def test_three_before_and_three_after_are_compared_as_repeats_of_two(shop: Shop) -> None:
    for label in ("before", "after") * 3:
        assert shop.measure("--label", label).code == 0
    done = shop("runs", "compare", "before", "after", "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    (line,) = found["lines"]
    assert (line["run"], line["against"]) == ("after", "before")
    assert line["ci_low"] < line["speed_ratio"] < line["ci_high"]
    assert [len(one["runs"]) for one in found["labels"]] == [3, 3]
    assert "before: 3 runs (" in shop("runs", "compare", "before", "after").out
    shop.measure("--label", "before", "--users", "3")
    refused = shop("runs", "compare", "before", "after")
    assert (refused.code, "both labelled before, and differ" in refused.err) == (2, True)
    none = shop("runs", "compare", "never", "after")
    assert (none.code, "labelled 'never'" in none.err) == (2, True)
    assert shop.measure("--label", "last").code == 2
    refused = shop.measure("--label", "a b")
    assert (refused.code, "a label begins with a letter" in refused.err) == (2, True)


@pytest.mark.night
def test_the_trend_of_a_measurement_is_of_the_same_one(shop: Shop) -> None:
    for users in ("2", "2", "3", "2"):
        shop.measure("--users", users)
    done = shop("runs", "trend", "last", "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["metric"], len(found["runs"])) == ("tps", 3)


@pytest.mark.night
def test_a_curve_is_one_run(shop: Shop) -> None:
    done = shop.measure("--users", "1,2", "--format", "json")
    assert done.code == 0, done.err
    (arm,) = shop.shown()["arms"]
    assert [one["users"] for one in arm["curve"]] == [1]
    assert [one["users"] for one in arm["repeats"]] == [2]
    assert "By number of users" in shop("report", "last", "--format", "md").out


def test_a_run_that_is_removed_is_gone(shop: Shop) -> None:
    shop.measure()
    assert shop("runs", "rm", "last", "--yes").code == 0
    assert shop.runs() == []

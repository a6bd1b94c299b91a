"""``hotset tpch`` on a real server: what it prints, where, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hotset.core.clock import wait_until
from hotset.core.record import SCHEMA_VERSION
from hotset.databases.postgres.tpch import PostgresTpch
from hotset.tpch.load import load
from tests.cli_server import CommandLine, Done
from tests.postgres_cluster import PASSWORD, Cluster

pytestmark = pytest.mark.database


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder that keeps the generated text for all tests here."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def whole(cluster: Cluster, folder: Path) -> Iterator[PostgresTpch]:
    """A database with TPC-H at scale 0.01."""
    with cluster.fresh("tpch") as where:
        made = PostgresTpch(where)
        load(made, 0.01, folder / "hotset" / "tpch")
        yield made


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[PostgresTpch]:
    with cluster.fresh("nothing") as where:
        yield PostgresTpch(where)


class Tpch:
    """`hotset tpch VERB --dsn …`, the password in the environment, as users give it."""

    def __init__(
        self, hotset: CommandLine, folder: Path, more: Mapping[str, str] | None = None
    ) -> None:
        self._hotset = hotset
        self._environment = {
            "XDG_CACHE_HOME": str(folder),
            "HOTSET_PASSWORD": PASSWORD,
            **(more or {}),
        }

    def __call__(
        self,
        verb: str,
        database: PostgresTpch,
        *argv: str,
        password: str = PASSWORD,
        interrupt: tuple[str, int] | None = None,
    ) -> Done:
        where = database.where
        dsn = f"postgresql://{where.user}@{where.host}:{where.port}/{where.dbname}"
        done = self._hotset(
            "tpch",
            verb,
            "--dsn",
            dsn,
            *argv,
            env={**self._environment, "HOTSET_PASSWORD": password},
            interrupt=interrupt,
        )
        assert password not in done.out + done.err
        assert "Traceback" not in done.err
        return done


def power_of(done: Done) -> dict[str, Any]:
    """The power run of what was printed as JSON."""
    (arm,) = json.loads(done.out)["power_arms"]
    (power,) = arm["repeats"]
    return dict(power)


@pytest.fixture
def tpch(hotset: CommandLine, folder: Path) -> Tpch:
    return Tpch(hotset, folder)


def test_build_check_drop(tpch: Tpch, empty: PostgresTpch) -> None:
    built = tpch("build", empty, "--scale", "0.01")
    assert (built.code, built.out) == (0, "")
    assert "loaded 86,805 rows" in built.err
    again = tpch("build", empty, "--scale", "0.01")
    assert again.code == 2
    assert "has hotset's TPC-H already" in again.err
    assert "to drop these and load again: add --replace" in again.err
    replaced = tpch("build", empty, "--scale", "0.01", "--replace", "--yes", "--quiet")
    assert (replaced.code, replaced.err) == (0, "")
    with closing(empty.session()) as session:
        session.script("CREATE TABLE mine (a integer)")
    dropped = tpch("drop", empty, "--yes")
    assert (dropped.code, dropped.out) == (0, "")
    assert dropped.err.startswith("dropped tpch_load, lineitem, orders, ")
    assert "dropped nothing" in tpch("drop", empty).err
    with closing(empty.session()) as session:
        assert session.query("SELECT count(*) FROM mine") == [(0,)]


@pytest.mark.night
def test_a_run_as_json_and_csv(tpch: Tpch, whole: PostgresTpch) -> None:
    run = tpch("run", whole, "--format", "json", "--streams", "min", "--seed", "7")
    document = json.loads(run.out)
    assert (run.code, document["schema_version"]) == (0, SCHEMA_VERSION)
    (arm,) = document["power_arms"]
    (power,), throughput = arm["repeats"], arm["throughput"]
    assert (power["seed"], power["scale"]) == (7, 0.01)
    assert [one["outcome"] for one in power["queries"]] == ["ok"] * 22
    assert throughput["tproc_h_composite"] ** 2 == pytest.approx(
        power["tproc_h_power"] * throughput["tproc_h_throughput"]
    )
    assert "query 14: " in run.err
    assert "stream 2: query 6: " in run.err
    quiet = tpch("run", whole, "--format", "csv", "--queries", "6,1", "--quiet")
    rows = list(csv.DictReader(io.StringIO(quiet.out)))
    assert (quiet.code, quiet.err) == (0, "")
    assert [(row["query"], row["outcome"], row["rows"]) for row in rows] == [
        ("6", "ok", "1"),
        ("1", "ok", "4"),
    ]


@pytest.mark.night
def test_a_run_is_kept_and_compared_with_another_of_the_same_queries(
    whole: PostgresTpch, hotset: CommandLine, folder: Path, tmp_path: Path
) -> None:
    """Of two runs nothing is claimed; other queries are another measurement."""
    archive = {"XDG_DATA_HOME": str(tmp_path / "kept")}
    tpch = Tpch(hotset, folder, archive)
    asked = ("--queries=6,1", "--sample=local", "--format=json", "--quiet")
    first, second = (json.loads(tpch("run", whole, *asked).out)["run"] for _ in range(2))
    shown = json.loads(hotset("runs", "show", first, "--format", "json", env=archive).out)
    (arm,) = shown["power_arms"]
    assert (arm["name"], [one["number"] for one in arm["repeats"][0]["queries"]]) == (
        "measured",
        [6, 1],
    )
    assert arm["repeats"][0]["server_cpu"] is not None
    assert shown["experiment"]["spec"]["tpch"]["scale"] == shown["database"]["tpch_scale"] == 0.01
    compared = hotset("runs", "compare", first, second, "--format=json", env=archive)
    (line,) = json.loads(compared.out)["lines"]
    assert (line["workload"], line["verdict"]) == ("tpch", "not known")
    for form in ("md", "html"):
        assert hotset("report", "last", "--format", form, env=archive).code == 0
    assert "2 TPC-H queries took" in hotset("report", "last", "--format=md", env=archive).out
    third = json.loads(tpch("run", whole, "--queries=6", "--format=json", "--quiet").out)["run"]
    refused = hotset("runs", "compare", first, third, env=archive)
    assert (refused.code, "tpch.queries: 6, 1 / 6" in refused.err) == (2, True)


def test_thresholds_are_judged_printed_and_written(
    tpch: Tpch, whole: PostgresTpch, tmp_path: Path
) -> None:
    junit = tmp_path / "junit.xml"
    refused = tpch("run", whole, "--threshold", "nopm>1")
    assert (refused.code, "there are queries, geomean, power" in refused.err) == (2, True)
    done = tpch(
        "run", whole, "--queries", "6", "--threshold", "query(6)<1us", "--junit", str(junit)
    )
    assert done.code == 5
    assert "query(6)<1us: missed, measured" in done.out
    assert 'failures="1"' in junit.read_text()
    met = tpch("run", whole, "--queries", "6", "--threshold", "queries<600s", "-f", "json")
    assert met.code == 0
    assert [one["met"] for one in json.loads(met.out)["thresholds"]] == [True]
    none = tpch("run", whole, "--queries", "6", "--threshold", "power>1")
    assert (none.code, "power was not measured" in none.err) == (5, True)


@pytest.mark.night
def test_a_run_as_a_table(tpch: Tpch, whole: PostgresTpch) -> None:
    run = tpch("run", whole, "--no-refresh")
    assert run.code == 0
    for word in ("validation parameters", "geometric mean", "not audited TPC results"):
        assert word in run.out
    assert "TPROC-H power" not in run.out.replace("TPROC-H figures", "")


def test_a_time_out_ends_with_4_and_prints_the_rest(tpch: Tpch, whole: PostgresTpch) -> None:
    run = tpch("run", whole, "--queries", "6,1", "--timeout", "0.001", "--format", "json")
    assert run.code == 4
    assert "the run is incomplete: query " in run.err
    assert [one["outcome"] for one in power_of(run)["queries"]] == ["timed out", "timed out"]
    shown = tpch("run", whole, "--queries", "6,1", "--timeout", "0.001")
    assert shown.out.count("timed out") == 2


@pytest.mark.night
def test_a_check(tpch: Tpch, whole: PostgresTpch) -> None:
    found = tpch("check", whole, "--queries", "1,6", "--format", "json")
    assert (found.code, json.loads(found.out)["holds"]) == (0, True)
    with closing(whole.session()) as session:
        session.script(
            "UPDATE hotset_tpch.lineitem SET l_quantity = l_quantity + 50 WHERE l_orderkey = 1"
        )
        try:
            wrong = tpch("check", whole, "--queries", "1,6")
        finally:
            session.script(
                "UPDATE hotset_tpch.lineitem SET l_quantity = l_quantity - 50 WHERE l_orderkey = 1"
            )
    assert wrong.code == 5
    assert "1 of 18 checks failed" in wrong.out


@pytest.mark.parametrize(
    ("verb", "argv", "words"),
    [
        ("run", [], "no TPC-H tables that were loaded"),
        ("check", [], "no TPC-H tables"),
    ],
)
def test_nothing_loaded(
    tpch: Tpch, empty: PostgresTpch, verb: str, argv: list[str], words: str
) -> None:
    done = tpch(verb, empty, *argv)
    assert (done.code, done.out) == (4, "")
    assert words in done.err


def test_another_scale(tpch: Tpch, whole: PostgresTpch) -> None:
    done = tpch("run", whole, "--scale", "1")
    assert (done.code, done.out) == (4, "")
    assert "holds TPC-H at scale 0.01, not 1" in done.err


def test_a_wrong_password(tpch: Tpch, whole: PostgresTpch) -> None:
    done = tpch("build", whole, password="wr0ng-one")  # noqa: S106
    assert (done.code, done.out) == (4, "")
    assert "password authentication failed" in done.err
    assert len(done.err.splitlines()) == 1


def test_ctrl_c_cancels_the_query_on_the_server(tpch: Tpch, whole: PostgresTpch) -> None:
    """A lock keeps query 6 waiting, as long as nobody cancels it."""
    with closing(whole.session()) as session:
        session.script("BEGIN; LOCK TABLE hotset_tpch.lineitem IN ACCESS EXCLUSIVE MODE")
        done = tpch("run", whole, "--queries", "6", interrupt=("query 6 (1 of 1)", signal.SIGINT))
        waiting = session.query("SELECT count(*) FROM pg_locks WHERE NOT granted")
        session.script("ROLLBACK")
    assert (done.code, done.out) == (130, "")
    assert "interrupted" in done.err
    assert waiting == [(0,)]


@pytest.mark.parametrize("more", [(), ("--refresh",)])
def test_ctrl_c_leaves_what_was_measured(
    tpch: Tpch, whole: PostgresTpch, more: tuple[str, ...]
) -> None:
    """Query 6 finishes, and query 5 waits for a lock until Ctrl-C."""
    with closing(whole.session()) as session:
        before = session.query("SELECT count(*) FROM hotset_tpch.orders")
        session.script("BEGIN; LOCK TABLE hotset_tpch.region IN ACCESS EXCLUSIVE MODE")
        done = tpch(
            *("run", whole, "--queries", "6,5", *more, "--format", "json"),
            interrupt=("query 5 (2 of 2)", signal.SIGINT),
        )
        session.script("ROLLBACK")
        assert session.query("SELECT count(*) FROM hotset_tpch.orders") == before
    assert done.code == 130, done.err
    assert "interrupted; what had been measured is in the result" in done.err
    assert [one["number"] for one in power_of(done)["queries"]] == [6]
    assert power_of(done)["cause"] == "interrupted"


def test_a_server_that_dies_leaves_what_was_measured(
    tpch: Tpch, whole: PostgresTpch, cluster: Cluster
) -> None:
    """Query 6 finishes, query 22 waits for a lock, and the server is killed."""
    session = whole.session()
    session.script("BEGIN; LOCK TABLE hotset_tpch.customer IN ACCESS EXCLUSIVE MODE")

    def kill_when_it_waits() -> None:
        wait_until(lambda: session.query("SELECT 1 FROM pg_locks WHERE NOT granted"), 30)
        cluster.kill()

    killer = threading.Thread(target=kill_when_it_waits)
    killer.start()
    try:
        run = tpch("run", whole, "--queries", "6,22", "--format", "json")
    finally:
        killer.join()
        session.close()
        cluster.start()
    assert run.code == 4
    assert "the run ended early: " in run.err
    assert [one["outcome"] for one in power_of(run)["queries"]] == ["ok", "failed"]

"""An experiment with SQL of one's own: what its file may say, how the database is loaded, and what
a search for a rate leaves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from hotset.core.errors import RequestError
from hotset.core.machines.base import Command, Result
from hotset.core.machines.local import Local
from hotset.core.paths import read_commit, repository_file
from hotset.core.sql import LoadFailed
from hotset.databases.postgres.server import Place, PostgresServer
from hotset.experiment import history, plan, runner, sequence, timed, verdicts
from hotset.experiment.file import sql_load
from hotset.experiment.file.spec import Spec, SpecError, read
from hotset.experiment.file.workload_tables import SqlTable
from hotset.experiment.journal import Journal
from hotset.experiment.recorded import Recorded
from hotset.experiment.sequence import Turn
from hotset.experiment.site import base_image
from hotset.experiment.site.context import SavedDatabase, SavedImage
from hotset.load.record import WindowOptions
from hotset.load.search import Limits, find_rate
from hotset.operations.remote import NotPermittedError, require_files
from hotset.reports.analysis import answer, caveats
from hotset.reports.archive import Archive
from hotset.reports.model.windows import Arrived, HighestRate, Repeat
from hotset.reports.render import charts, sections
from tests import documents

SHOP = repository_file("experiments/shop.toml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The shipped experiment, with its SQL, to be changed."""
    shutil.copytree(SHOP.with_suffix(""), tmp_path / "shop")
    return Path(shutil.copy(SHOP, tmp_path))


def sql(spec: Spec) -> SqlTable:
    assert spec.sql is not None
    return spec.sql


def refused(file: Path, *overrides: str) -> str:
    with pytest.raises(SpecError) as error:
        read(file, overrides)
    message = str(error.value)
    assert "{" not in message, "a whole table is no value to show"
    return message


def test_files_are_named_relative_to_the_experiment(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    wanted = read(file)
    assert [(one.name, one.weight) for one in sql(wanted).scripts] == [
        ("browse", 60),
        ("history", 25),
        ("checkout", 15),
    ]
    load = sql(wanted).load
    assert (load.kind, [one.name for one in load.files]) == (
        "sql",
        ["1-tables.sql", "2-rows.sql", "3-indexes.sql"],
    )
    assert all(one.is_relative_to(tmp_path / "shop/load") for one in load.files)


def test_the_record_has_the_names_as_they_were_given_and_the_scripts_texts(
    file: Path, tmp_path: Path
) -> None:
    wanted = read(file)
    kept = Journal.begin(Archive(tmp_path / "runs"), wanted).document
    assert kept.hotset_commit == read_commit()
    own = kept.experiment.spec["sql"]
    assert isinstance(own, dict)
    assert own["load"] == "shop/load"
    assert own["scripts"] == ["shop/browse.sql@60", "shop/history.sql@25", "shop/checkout.sql@15"]
    assert str(tmp_path) not in kept.model_dump_json()
    assert "FROM review" in kept.experiment.scripts[0].text
    assert (kept.timed, kept.experiment.spec["tpcc"]) == ("sql", None)


def test_a_run_whose_scripts_have_changed_is_not_resumed(file: Path, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "runs")
    run = Journal.begin(archive, read(file)).document.run
    assert Journal.resume(archive, read(file), run).document.run == run
    script = file.parent / "shop/browse.sql"
    script.write_text(script.read_text().replace("LIMIT 10", "LIMIT 20"))
    with pytest.raises(SpecError, match="another experiment"):
        Journal.resume(archive, read(file), run)


def test_a_script_with_a_syntax_error_is_named_with_its_line(file: Path) -> None:
    script = file.parent / "shop/history.sql"
    script.write_text("-- first line\n\\set customer random(1,\nSELECT :customer;\n")
    run = timed.find_timed(read(file))
    assert run is not None
    with pytest.raises(RequestError, match=r"^history\.sql:2: syntax error"):
        run.require()
    script.write_text("SELECT 1;\n\\shell ls\n")
    assert "history.sql:2: \\shell is not supported" in refused(file)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ('sql.scripts=["shop/basket.sql"]', "basket.sql"),
        ('sql.scripts=["shop/browse.sql@x"]', "the weight behind @"),
        ("sql.scripts=[]", "sql.scripts"),
        ("sql.load=shop/dump", "no such file or folder"),
        ("sql.load=shop/dump", "shop/dump"),
        ("sql.load=shop.bak", "a backup of SQL Server"),
        ("sql.load=.", "neither SQL files"),
        ("sql.script=x", "unknown key sql.script"),
        ("sql.users=0", "sql.users = 0"),
        ("sql.find_rate=speed<5", "there is no metric 'speed'; there are tps, "),
        ("sql.find_rate=p95(basket)<5ms", "p95(browse)"),
        ("sql.find_rate=p95", "find_rate"),
        ("sql.rate=fast", "sql.rate = 'fast'"),
        ("sql.rate=0/s", "give a rate above 0"),
        ("tpcc={ warehouses = 1, users = 1 }", "[tpcc] and [sql]"),
        ("sql.size=2GB", "sql.size = "),
        ("thresholds.nopm=>5", "there is no metric 'nopm'; there are factor"),
        ("thresholds.highest_rate=>5", "there is no metric 'highest_rate'"),
    ],
)
def test_what_is_wrong_is_told(file: Path, override: str, said: str) -> None:
    assert said in refused(file, override)


def test_an_experiment_has_a_workload(file: Path) -> None:
    text = file.read_text()
    start, end = text.index("[sql]"), text.index("[warmup]")
    file.write_text(text[:start] + text[end:])
    assert "there is no workload: add a table [tpcc], [sql] or [tpch]" in refused(file)


def test_the_22_queries_alone_are_an_experiment(file: Path) -> None:
    text = file.read_text()
    start, end = text.index("[sql]"), text.index("[warmup]")
    file.write_text(f"{text[:start]}[tpch]\nscale = 0.01\n{text[end:]}")
    wanted = read(file)
    assert (wanted.placements, wanted.timed, wanted.connections) == ((("tpch",),), None, 1)
    assert timed.find_timed(wanted) is None


def test_thresholds_name_what_is_measured(file: Path) -> None:
    wanted = read(file, ("sql.find_rate=p95<50ms", "thresholds.rate_factor=>=4"))
    found = wanted.limits(["tps>100", "highest_rate(baseline)>1", "p95<1s"])
    assert len(found) == 4


def test_one_rate_is_given_or_sought(file: Path) -> None:
    found = read(file, ("sql.rate=1,500/s",)).timed
    assert found is not None
    assert found.rate_per_s == 1500
    assert "leave rate out" in refused(file, "sql.rate=500/s", "sql.find_rate=p95<5ms")
    read(file, ("sql.rate=500/s", "thresholds.p95=<20ms"))
    said = refused(file, "sql.rate=500/s", "thresholds.factor=>5")
    assert "there is no metric 'factor'; there are tps, p50" in said


def test_at_a_given_rate_there_is_no_factor_of_throughput(tmp_path: Path) -> None:
    """Each arm did what was due: 1.0 would be read as no gain."""
    wanted = read(SHOP, ("sql.rate=500/s",))
    journal = Journal.begin(Archive(tmp_path), wanted)
    journal.change(arms=documents.at_a_rate().arms)
    journal.finish(wanted.arms)
    assert journal.document.factors == {}
    assert "95 % of them took" in answer.headline(journal.document)
    assert "RATE_NOT_REACHED" in {one.code for one in caveats.list_caveats(journal.document)}


def test_the_search_takes_a_limit_or_several(file: Path) -> None:
    one = read(file, ("sql.find_rate=p95(browse)<50ms",))
    assert sql(one).find_rate == ("p95(browse)<50ms",)
    assert [limit.metric for limit in sql(one).limits] == ["p95(browse)"]
    several = read(file, ('sql.find_rate=["p95<50ms", "p99<1s"]',))
    assert sql(several).find_rate == ("p95<50ms", "p99<1s")


def test_tpcc_can_be_searched_too_but_not_with_think_times() -> None:
    demo = repository_file("experiments/demo.toml")
    wanted = read(demo, ("tpcc.find_rate=tpc-c",))
    assert wanted.timed is not None
    assert len(wanted.timed.limits) == 5
    with pytest.raises(SpecError, match="leave think_time out"):
        read(demo, ("tpcc.find_rate=tpc-c", "tpcc.think_time=true"))


def test_the_plan_names_scripts_and_search(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = read(file, ("sql.find_rate=p95<50ms", "sql.users=[1, 4]"))
    site: Any = SimpleNamespace(spec=wanted)
    placed: Any = SimpleNamespace(warmed=True)
    sequence.on_arm(site, Turn("accelerated", 1, ("sql",)), placed, plan._Printed())
    assert capsys.readouterr().out.splitlines() == [
        "sql   $ browse, history, checkout, 4 users, probe, 3 s or until reads are level, 20 s at"
        " most",
        "sql   $ browse, history, checkout, 1 user, 3 s ramp-up, 10 s",
        "sql   $ browse, history, checkout, 4 users, 3 s ramp-up, 10 s",
        "sql   $ browse, history, checkout, 4 users, 3 s ramp-up, 10 s, at rates up to the highest"
        " with p95<50ms",
    ]


def test_a_caller_who_may_not_name_a_file_has_it_not_read(file: Path, tmp_path: Path) -> None:
    """Refused before it is opened: a message about its content would tell what stands in it."""
    asked: list[str] = []

    def allow(files: Iterable[str]) -> None:
        asked.extend(files)
        if any("secret" in one for one in asked):
            raise NotPermittedError("no")

    (tmp_path / "secret.sql").write_text("root:x:0")
    with pytest.raises(NotPermittedError):
        read(file, ('sql.scripts=["shop/../secret.sql"]',), allow)
    assert asked == [str(tmp_path / "shop/load"), str(tmp_path / "shop/../secret.sql")]
    require_files([str(SHOP.with_suffix("") / "browse.sql")], "file")
    with pytest.raises(NotPermittedError):
        require_files([str(tmp_path / "secret.sql")], "file")


# The load


def test_an_archive_of_pg_dump_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"PGDMP\x01\x0e\x00")
    (tmp_path / "b.sql").write_text("SELECT 1;")
    (tmp_path / "c").mkdir()
    (tmp_path / "c/toc.dat").write_bytes(b"PGDMP")
    kinds = {name: sql_load.find(name, tmp_path).kind for name in ("a", "b.sql", "c")}
    assert kinds == {"a": "archive", "b.sql": "sql", "c": "archive"}


def test_another_load_is_another_image_and_other_scripts_are_not(file: Path) -> None:
    before = base_image.path_for(read(file), "image")
    assert before.name.startswith("sql-")
    (file.parent / "shop/browse.sql").write_text("SELECT 1;\n")
    assert base_image.path_for(read(file), "image") == before
    (file.parent / "shop/load/4-more.sql").write_text("SELECT 1;\n")
    assert base_image.path_for(read(file), "image") != before


def test_a_large_load_is_told_by_its_size_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / "shop.dump"
    dump.write_bytes(b"PGDMP" + bytes(100))
    whole = sql_load.find("shop.dump", tmp_path).fingerprint()
    os.utime(dump, (1, 1))
    assert sql_load.find("shop.dump", tmp_path).fingerprint() == whole, "the same content"
    monkeypatch.setattr(sql_load, "_READ_UP_TO", 10)
    large = sql_load.find("shop.dump", tmp_path).fingerprint()
    os.utime(dump, (2, 2))
    assert sql_load.find("shop.dump", tmp_path).fingerprint() != large


class Recording(Local):
    """This computer, with a server that takes nothing of what it is told to load."""

    def __init__(self, error: str = "") -> None:
        super().__init__()
        self.ran: list[Sequence[str]] = []
        self._error = error

    def execute(self, command: Command) -> Result:
        self.ran.append(command.argv)
        program = PurePosixPath(command.argv[0]).name
        if program == "ls":
            return Result(command.argv, 0, "17\n", "", 0)
        if program in ("psql", "pg_restore"):
            file = next(one for one in command.argv if "/load/" in one)
            return Result(command.argv, 3, "", self._error.format(file=file), 0)
        return super().execute(command)


def server(machine: Local, folder: Path) -> PostgresServer:
    place = PurePosixPath(folder)
    return PostgresServer(machine, Place(place / "data", place / "volume"), "secret")


def test_a_statement_that_fails_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    machine = Recording('psql:{file}:3: ERROR:  relation "product" does not exist')
    rows = tmp_path / "2-rows.sql"
    rows.write_text("SELECT 1;\n")
    with pytest.raises(LoadFailed) as failed:
        server(machine, tmp_path).load("sql", [rows], lambda _: None)
    assert str(failed.value) == f'{rows}:3: ERROR:  relation "product" does not exist'
    assert not (tmp_path / "data/load").exists(), "no copy stays in the image"


def test_an_archive_is_restored_without_the_roles_of_its_server(tmp_path: Path) -> None:
    machine = Recording("pg_restore: error: unsupported version (1.16) in file header")
    dump = tmp_path / "shop.dump"
    dump.write_bytes(b"PGDMP")
    with pytest.raises(LoadFailed, match=r"unsupported version \(1\.16\)"):
        server(machine, tmp_path).restore("sql", dump)
    argv = next(one for one in machine.ran if "pg_restore" in one[0])
    assert {"--no-owner", "--no-privileges", "--exit-on-error"} <= set(argv)
    assert "secret" not in " ".join(map(str, machine.ran))


def test_a_database_that_is_larger_than_was_said_is_refused(file: Path) -> None:
    wanted = read(file)
    saved = SavedImage(Path("x"), {"sql": SavedDatabase(sql(wanted).size, "base/5")}, "17.6")
    runner._require_size(wanted, saved)
    small = read(file, ("sql.size=100MB",))
    with pytest.raises(SpecError, match=r"sql\.size = .*the loaded database takes 382 MiB"):
        runner._require_size(small, saved)


# The search


def result(options: WindowOptions, tps: float) -> Repeat:
    rate = options.rate_per_s
    due = round((rate or 0) * 10)
    return Repeat(
        rampup_s=0,
        duration_s=10,
        tpm=tps * 60,
        failed=0,
        retries=0,
        arrived=Arrived(rate_per_s=rate, due=due, late=0, skipped=0, growth=due - tps * 10)
        if rate
        else None,
    )


def test_the_window_just_measured_is_where_a_search_begins() -> None:
    """Otherwise each search would take one window more."""
    ran: list[float | None] = []

    def run(options: WindowOptions) -> Repeat:
        ran.append(options.rate_per_s)
        return result(options, options.rate_per_s or 100)

    options = WindowOptions(users=4, rampup_s=0, duration_s=10)
    limits = Limits((), lambda _: "")
    found = find_rate(run, options, limits, fastest=result(options, 100))
    assert None not in ran
    assert found.record.unpaced_per_s == 100


def test_a_search_is_kept_with_its_ends(tmp_path: Path) -> None:
    options = WindowOptions(users=4, rampup_s=0, duration_s=10)
    limits = Limits(("tps<70",), lambda window: "" if window.tpm < 4200 else "tps<70: missed")
    found = find_rate(lambda options: result(options, options.rate_per_s or 100), options, limits)
    kept = found.record.model_copy(update={"repeat": 2})
    assert kept.rate_per_s is not None
    assert kept.rate_per_s < 70 < kept.failed_per_s < 70 * 1.06
    assert (kept.limits, kept.users) == (("tps<70",), 4)
    HighestRate.model_validate(kept.model_dump())
    journal = Journal.begin(Archive(tmp_path), read(SHOP))
    assert not journal.has_rate("baseline", 2)
    journal.add_rate("baseline", kept)
    assert journal.has_rate("baseline", 2)
    assert journal.document.arms[0].workload == "sql"


def test_what_is_followed_over_time_is_the_throughput(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    journal = Journal.begin(archive, read(SHOP, ("sql.find_rate=p95<50ms",)))
    journal.change(arms=documents.with_sql().arms, state="complete")
    run = journal.document
    found, _ = history.trend(archive, run, None, 10)
    assert (found.metric, len(found.samples)) == ("tps", 1)
    assert found.samples[0].value == answer.figures(run.arms[1]).rate
    assert history.metrics(run).count("highest_rate") == 1
    assert verdicts.main(documents.queries_alone()) == "queries"


def test_the_report_draws_the_rates() -> None:
    document = documents.with_sql()
    (drawn,) = [one for one in sections.page_of(document).sections if one.key == "highest-rates"]
    assert drawn.title == "Highest rate that meets the limits: p95<50ms"
    assert "accelerated 419" in drawn.panels[0].alt
    assert len(drawn.tables[0].rows) == 9
    assert charts.highest_rates(documents.complete()) is None


def test_a_run_is_done_when_its_rate_was_found_too(tmp_path: Path) -> None:
    wanted = read(SHOP, ("sql.find_rate=p95<50ms", "repeats=1", "sql.users=16"))
    journal = Journal.begin(Archive(tmp_path), wanted)
    journal.add_repeat("baseline", documents.with_sql().arms[0].repeats[0])
    work, turn = Recorded(journal), Turn("baseline", 1, ("sql",))
    assert not work.is_done(wanted, turn, "sql")
    journal.add_rate("baseline", documents.highest_rate(1, 40))
    assert work.is_done(wanted, turn, "sql")

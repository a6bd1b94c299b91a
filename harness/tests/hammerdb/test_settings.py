"""HammerDB's lines, settings and scripts; nothing is started here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.core.errors import of_command_line
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.databases.postgres.product import PostgresDatabase
from hotset.hammerdb import release, script, settings, tables
from hotset.hammerdb.process import output, watch
from hotset.hammerdb.process.failures import HammerdbFailed, HammerdbRefused
from hotset.hammerdb.process.output import Counter, Message, User, parse
from hotset.hammerdb.tpcc import whole_minutes
from hotset.tpcc.database import Session
from tests.support.hammerdb_database import Connection

PASSWORD = "never-to-be-seen"  # noqa: S105 - of no server
POSTGRES = PostgresDatabase("127.0.0.1", 5432, "tester", PASSWORD, "bench")
TPCC = settings.Tpcc(20, build_users=4, rampup_min=2, duration_min=5)
TPCH = settings.Tpch(10, build_users=4)


@dataclass(frozen=True)
class SqlServer:
    """A connection as the adapter for SQL Server gives it."""

    host: str = "db.example"
    port: int = 1533
    user: str = "sa"
    password: str = field(default=PASSWORD, repr=False)
    dbname: str = "bench"
    encrypt: str = "yes"
    trust: bool = True
    trusted: bool = False
    engine: str = "sqlserver"
    hammerdb: str = "mssqls"
    freetds: bool = False

    def odbc_driver(self) -> str:
        return "ODBC Driver 18 for SQL Server"

    def uses_freetds(self) -> bool:
        return self.freetds

    def session(self) -> Session:
        raise NotImplementedError

    def looking(self) -> SqlServer:
        return self


# Lines

GOLDEN: dict[str, output.Line] = {
    "HammerDB CLI v6.0": Message(0, "HammerDB CLI v6.0"),
    "\rBenchmark set to TPC-C for PostgreSQL": Message(0, "Benchmark set to TPC-C for PostgreSQL"),
    "Vuser 1:TEST RESULT : System achieved 61884 NOPM from 142211 PostgreSQL TPM": (
        output.TestResult(61884, 142211, "PostgreSQL")
    ),
    "Vuser 1:TEST RESULT : System achieved 9 NOPM from 21 SQL Server TPM": (
        output.TestResult(9, 21, "SQL Server")
    ),
    "Vuser 1:query 14 completed in 0.435 seconds": output.Query(1, 14, 0.435),
    "Vuser 2:query 1 completed in 12 seconds": output.Query(2, 1, 12.0),
    "Vuser 1:Completed 1 query set(s) in 17 seconds": output.QuerySet(1, 1, 17),
    "Vuser 1:Geometric mean of query times returning rows (22) is 0.46573": (
        output.GeometricMean(1, 22, 0.46573)
    ),
    'Vuser 1:Geometric mean of query times returning rows (22) is "0.46573"': (
        output.GeometricMean(1, 22, 0.46573)
    ),
    "Error in Virtual User 3: Database tpcc exists but is not empty": output.UserError(
        3, "Database tpcc exists but is not empty"
    ),
    "Error in Virtual User 3:": output.UserError(3, ""),
    "Vuser 3:FINISHED FAILED": User(3, "failed"),
    "Vuser 12:FINISHED SUCCESS": User(12, "success"),
    "Vuser 3:RUNNING": User(3, "running"),
    "ALL VIRTUAL USERS COMPLETE": output.AllComplete(),
    "JOBID=Benchmark Run jobid=6B019BCC660C03E243536323": output.Job("6B019BCC660C03E243536323"),
    "JOBID=Schema Build jobid=6B019A64660C03E273234393": output.Job("6B019A64660C03E273234393"),
    "JOBID=Benchmark Run (No jobid)": Message(0, "JOBID=Benchmark Run (No jobid)"),
    "104220 PostgreSQL tpm\r": Counter(104220, "PostgreSQL", "tpm"),
    "0 MSSQLServer tpm": Counter(0, "MSSQLServer", "tpm"),
    "Vuser 1:Rampup complete, Taking start Transaction Count.": output.WindowEdge("measure"),
    "Vuser 1:Test complete, Taking end Transaction Count.": output.WindowEdge("done"),
    "Vuser 1:Beginning rampup time of 2 minutes": output.WindowEdge("rampup"),
    "Vuser 1:Rampup 1 minutes complete ...": Message(1, "Rampup 1 minutes complete ..."),
    "Vuser 4:New Order Procedure Error set RAISEERROR for Details": output.ProcedureError(
        4, "New Order"
    ),
    "Vuser 1:New Sales refresh complete in 3.25 seconds": output.Refresh(1, 3.25),
    "Vuser 1:Old Sales refresh complete in 2 seconds": output.Refresh(2, 2.0),
    "Vuser 1:The setting of the scale factor (10) is different from the scale factor of the"
    " existing schema (1), updating the scale factor to 1.": output.OtherScale(1),
}


@pytest.mark.parametrize("line", GOLDEN)
def test_lines_of_hammerdb_6(line: str) -> None:
    assert parse(line) == GOLDEN[line]


@given(st.text())
def test_any_line_is_read_and_none_is_lost(text: str) -> None:
    line = parse(text)
    if isinstance(line, Message) and line.user == 0:
        assert line.text == text.strip()


@given(st.integers(1, 10**6), st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_what_users_say_survives_the_prefix(user: int, text: str) -> None:
    assert parse(f"Vuser {user}:{text}") == output.parse_line(user, text.strip())


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_results_survive_a_round_trip(nopm: int, tpm: int) -> None:
    text = f"Vuser 1:TEST RESULT : System achieved {nopm} NOPM from {tpm} PostgreSQL TPM"
    assert parse(text) == output.TestResult(nopm, tpm, "PostgreSQL")


# Settings and scripts


@pytest.mark.parametrize("connection", [POSTGRES, SqlServer()])
@pytest.mark.parametrize("asked", [TPCC, TPCH])
def test_scripts_set_every_key_and_hold_no_password(
    connection: settings.Connection, asked: settings.Tpcc | settings.Tpch
) -> None:
    dictionary = settings.dictionary(connection, asked)
    workload: settings.Workload = "TPC-C" if isinstance(asked, settings.Tpcc) else "TPC-H"
    run = (
        script.write_timed_run(connection.hammerdb, 4, dictionary)
        if workload == "TPC-C"
        else script.power(connection.hammerdb, dictionary)
    )
    for text in (run, script.build(connection.hammerdb, workload, dictionary)):
        assert PASSWORD not in text
        assigned = re.findall(r"^diset (\w+) (\w+) \{(.*)\}$", text, re.MULTILINE)
        assert assigned == [(s, k, v) for s, keys in dictionary.items() for k, v in keys.items()]
        assert text.splitlines()[-1] == 'puts "JOBID=$job"'
    secret = [key for keys in dictionary.values() for key in keys if "pass" in key]
    assert secret
    for key in secret:
        assert f"{key} {{$::env({settings.PASSWORD_VARIABLE})}}" in run


def test_what_tests_of_a_cache_need() -> None:
    tpcc = settings.dictionary(POSTGRES, TPCC)["tpcc"]
    assert tpcc["pg_allwarehouse"] == "true"
    assert (tpcc["pg_rampup"], tpcc["pg_duration"]) == ("2", "5")
    assert tpcc["pg_timeprofile"] == "true"


def test_sql_server_by_tcp_and_without_bcp() -> None:
    # The port counts only with tcp; bcp would show the password to everyone.
    connection = settings.dictionary(SqlServer(), TPCC)["connection"]
    assert connection["mssqls_tcp"] == "true"
    assert connection["mssqls_port"] == "1533"
    assert connection["mssqls_trust_server_cert"] == "true"
    assert settings.dictionary(SqlServer(), TPCC)["tpcc"]["mssqls_use_bcp"] == "false"
    assert settings.dictionary(SqlServer(), TPCH)["tpch"]["mssqls_tpch_use_bcp"] == "false"


@pytest.mark.parametrize("sign", [" ", ";", "$", "{", "}", "[", '"', "'", "\\", "#", "ü", "\n"])
def test_passwords_that_hammerdb_would_take_apart(sign: str) -> None:
    connection = PostgresDatabase("h", 1, "u", f"secret{sign}", "d")
    with pytest.raises(HammerdbRefused, match="the password holds") as refused:
        settings.dictionary(connection, TPCC)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "maria"])
def test_a_product_that_hammerdb_is_not_driven_for_is_refused(name: str) -> None:
    """One that is no SQL Server was taken for PostgreSQL."""
    for connection in (Connection(hammerdb=name), SqlServer(hammerdb=name)):
        with pytest.raises(HammerdbRefused, match="HammerDB is not driven for it"):
            settings.dictionary(connection, TPCC)


def test_no_password_is_refused_unless_nobody_asks_for_one() -> None:
    with pytest.raises(HammerdbRefused, match="the password is empty") as refused:
        settings.dictionary(PostgresDatabase("h", 1, "u", "", "d"), TPCC)
    assert "HOTSET_PASSWORD" in of_command_line(refused.value)
    trusted = settings.dictionary(SqlServer(user="", password="", trusted=True), TPCC)
    assert trusted["connection"]["mssqls_linux_authent"] == "windows"


@pytest.mark.parametrize("name", ["host", "user", "dbname"])
@pytest.mark.parametrize("value", ["", "a b", "x{y", "x$y", "x[exit]"])
def test_odd_names_are_refused(name: str, value: str) -> None:
    given_ = {"host": "h", "user": "u", "dbname": "d", name: value}
    with pytest.raises(HammerdbRefused, match=name):
        settings.dictionary(PostgresDatabase(port=1, password=PASSWORD, **given_), TPCC)


KEY = st.text("abcdefgh_", min_size=1)
SECTIONS = st.dictionaries(KEY, st.dictionaries(KEY, st.text("abc =$()12 "), min_size=1))


@given(SECTIONS)
def test_printed_dictionaries_are_read_whole(sections: dict[str, dict[str, str]]) -> None:
    text = "noise {\n".join(
        f"{name:10} {{\n" + "".join(f" {key:18} = {value}\n" for key, value in keys.items()) + "}\n"
        for name, keys in sections.items()
    )
    found = settings.parse_printed(text)
    assert {name: found[name] for name in sections} == {
        name: frozenset(keys) for name, keys in sections.items()
    }


def test_a_key_more_or_less_is_named_with_the_version() -> None:
    ours = settings.dictionary(POSTGRES, TPCC)
    theirs = {section: frozenset(keys) for section, keys in ours.items()}
    settings.compare(ours, theirs, "6.0")
    theirs["tpcc"] = (theirs["tpcc"] - {"pg_rampup"}) | {"pg_new"}
    with pytest.raises(HammerdbFailed) as failed:
        settings.compare(ours, theirs, "7.1")
    assert "HammerDB 7.1" in str(failed.value)
    assert "tpcc:pg_new is not set by hotset" in str(failed.value)
    assert "tpcc:pg_rampup is unknown to it" in str(failed.value)


@pytest.mark.parametrize(("seconds", "minutes"), [(60, 1), (0, 0), (600.0, 10)])
def test_whole_minutes(seconds: float, minutes: int) -> None:
    assert whole_minutes("rampup_s", seconds, at_least=0) == minutes


@pytest.mark.parametrize(("seconds", "remedy"), [(90, "give 120"), (30, "give 60"), (0, "give 60")])
def test_fractions_of_a_minute_are_refused(seconds: float, remedy: str) -> None:
    with pytest.raises(HammerdbRefused, match=f"duration_s {seconds}.*{remedy}"):
        whole_minutes("duration_s", seconds, at_least=1)


# Conditions of a good end


def good(users: int) -> list[output.Line]:
    return [
        *(
            User(number, state)
            for number in range(1, users + 1)
            for state in ("running", "success")
        ),
        output.AllComplete(),
        output.Job("AB"),
    ]


@given(st.integers(1, 8), st.data())
def test_a_run_that_lacks_any_line_did_not_end_well(users: int, data: st.DataObject) -> None:
    lines = good(users)
    assert watch.require_success(lines, users) == "AB"
    lines.pop(data.draw(st.integers(0, len(lines) - 1)))
    with pytest.raises(HammerdbFailed):
        watch.require_success(lines, users)


def test_stalls() -> None:
    times = iter([0.0, 29.0, 29.0, 31.0, 40.0, 69.0])
    seen = watch.Watch(30, clock=lambda: next(times))
    seen.take(Counter(12, "PostgreSQL", "tpm"))  # an idle server is no progress
    seen.silence()
    with pytest.raises(HammerdbFailed, match="stalled: no progress for 31 s"):
        seen.take(Counter(12, "PostgreSQL", "tpm"))
    seen.take(Message(1, "Loading Items - 10000"))
    seen.silence()


def test_a_cause_of_several_lines_is_told_whole() -> None:
    seen = watch.Watch(30)
    for line in (
        "Error in Virtual User 2: Connection to database failed",
        'connection to server failed: FATAL:  password authentication failed for user "x"',
        "",
    ):
        seen.take(parse(line))
    with pytest.raises(HammerdbFailed, match=r"^virtual user 2 gave up: Connection .* \"x\"$"):
        seen.take(User(2, "failed"))
    with pytest.raises(HammerdbFailed, match="password authentication failed"):
        seen.silence()


def test_after_the_window_there_is_time_to_gather() -> None:
    times = iter([0.0, 0.0, 170.0, 181.0])
    seen = watch.Watch(30, clock=lambda: next(times))
    seen.take(output.WindowEdge("done"))
    seen.silence()
    with pytest.raises(HammerdbFailed, match="stalled"):
        seen.silence()


# Tables


def test_expected_rows() -> None:
    assert tables.tpcc_rows(3)["stock"] == 300_000
    assert tables.tpcc_rows(3)["item"] == 100_000
    assert tables.tpch_rows(10)["lineitem"] == 59_986_052
    assert tables.tpch_rows(10)["nation"] == 25


# The release


def test_no_home_and_a_wrong_one(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteMissingError, match="HAMMERDB_HOME is not set"):
        release.find({})
    with pytest.raises(PrerequisiteMissingError, match="holds no program hammerdbcli"):
        release.find({"HAMMERDB_HOME": str(tmp_path)})


def test_abilities() -> None:
    said = (
        "HammerDB CLI v6.0\nChecking database library for MSSQLServer\n"
        "Error: failed to load tdbc::odbc - can't find package\nEnsure that …\n"
        "Checking database library for PostgreSQL\n"
        "Success ... loaded library Pgtcl for PostgreSQL\n"
    )
    found = release.abilities(release.Release(Path("/x")), said)
    assert found.version == "6.0"
    assert found.databases == ("PostgreSQL",)
    assert found.lacks == ("not for SQL Server (tdbc::odbc - can't find package)",)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (SqlServer(encrypt="strict"), "no encrypt=strict: write encrypt=yes"),
        (SqlServer(freetds=True), "FreeTDS encrypt.*Microsoft's driver.*or write encrypt=no"),
        (SqlServer(freetds=True, encrypt="mandatory", trust=False), "encrypt=mandatory"),
    ],
)
def test_it_never_connects_with_less_than_the_dsn_asks_for(asked: SqlServer, said: str) -> None:
    with pytest.raises(HammerdbRefused, match=said):
        settings.dictionary(asked, TPCC)
    plain = replace(asked, encrypt="optional")
    assert settings.dictionary(plain, TPCC)["connection"]["mssqls_encrypt_connection"] == "false"

"""What administrators ask of a server, on rows as SQL Server sends them, and on refusals."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.resources import files

import pytest
import sqlglot

from hotset.core.sql import Aborted, Row
from hotset.core.units import Bytes
from hotset.databases.base import (
    Change,
    Counter,
    FileIo,
    Unavailable,
    Version,
    Wait,
    difference,
    sql,
)
from hotset.databases.postgres.admin import PostgresEngine
from hotset.databases.sqlserver.admin import SqlServerEngine

GIB = 1024**3
DENIED = Aborted("error 300", False, "VIEW SERVER STATE permission was denied on object 'server'")
MISSING = Aborted("error 208", False, "Invalid object name 'sys.dm_os_wait_stats'.")
FILES: list[Row] = [
    ("tempdb", "tempdev", "ROWS", "/var/opt/mssql/data/tempdb.mdf", 8388608),
    ("tempdb", "templog", "LOG", "/var/opt/mssql/data/templog.ldf", 8388608),
    ("tpcc", "tpcc", "ROWS", "/var/opt/mssql/data/tpcc.mdf", 10 * GIB),
    ("tpcc", "tpcc]log", "LOG", "/var/opt/mssql/data/it's.ldf", GIB),
    ("other", "other_log", "LOG", "/var/opt/mssql/data/other.ldf", GIB),
]


@dataclass
class Canned:
    """Answers by the statement's file name; a view that is not named here is missing."""

    engine: str
    answers: dict[str, list[Row] | Aborted]
    scripts: list[str] = field(default_factory=list)
    closed: bool = False

    def query(self, statement: str) -> list[Row]:
        for name, answer in self.answers.items():
            if statement == sql(self.engine, name).format(name="pg_buffercache"):
                if isinstance(answer, Aborted):
                    raise answer
                return answer
        raise MISSING

    def script(self, statement: str) -> None:
        self.scripts.append(statement)

    def close(self) -> None:
        self.closed = True


def sqlserver(**answers: list[Row] | Aborted) -> SqlServerEngine:
    return SqlServerEngine(Canned("sqlserver", answers), "tpcc")


def postgres(version: int, **answers: list[Row] | Aborted) -> PostgresEngine:
    known: list[Row] = [(f"{version}.1", version * 10_000 + 1)]
    return PostgresEngine(Canned("postgres", {"version": known, **answers}))


def statements(change: Change | Unavailable) -> tuple[str, ...]:
    assert isinstance(change, Change)
    return change.statements


# SQL Server


def test_version_and_edition() -> None:
    text = "Microsoft SQL Server 2022 (RTM-CU15) (KB5041321) - 16.0.4145.4 (X64) \n\tAug …"
    server = sqlserver(version=[("16.0.4145.4", "Express Edition (64-bit)", text)])
    assert server.version() == Version(
        "Microsoft SQL Server 2022 (RTM-CU15) (KB5041321)",
        "16.0.4145.4",
        "Express Edition (64-bit)",
    )
    text = "Babelfish for PostgreSQL with SQL Server … - 12.0.2000.8\nNov … (Babelfish 4.3.0)"
    server = sqlserver(version=[("12.0.2000.8", "Standard Edition", text)])
    assert server.version().version == "4.3.0", "not that of the SQL Server that it poses as"


def test_placement_tells_data_log_and_temporary_files_apart() -> None:
    found = sqlserver(placement=FILES).placement()
    assert isinstance(found, list)
    assert [(one.name, one.kind, int(one.size)) for one in found[:4]] == [
        ("tempdev", "temp", 8388608),
        ("templog", "temp", 8388608),
        ("tpcc", "data", 10 * GIB),
        ("tpcc]log", "log", GIB),
    ]


def test_tempdb_moves_at_the_next_start() -> None:
    change = sqlserver(placement=FILES).move("/v/sql")
    assert statements(change) == (
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = [tempdev], FILENAME = N'/v/sql/tempdb.mdf');",
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = [templog], FILENAME = N'/v/sql/templog.ldf');",
    )
    assert isinstance(change, Change)
    assert change.restart
    assert "/v/sql" in change.notes[0]


def test_the_databases_own_log_moves_if_asked_and_names_are_quoted() -> None:
    change = sqlserver(placement=FILES).move("F:\\sql's", log=True)
    assert statements(change)[2:] == (
        "ALTER DATABASE [tpcc] MODIFY FILE"
        " (NAME = [tpcc]]log], FILENAME = N'F:\\sql''s\\it''s.ldf');",
    )
    assert isinstance(change, Change)
    assert "copy /var/opt/mssql/data/it's.ldf to F:\\sql's\\it's.ldf" in change.notes[1]


def test_what_lies_there_already_stays() -> None:
    moved = sqlserver(placement=FILES).move("/var/opt/mssql/data")
    assert moved == Change(())


def test_growth_is_in_fixed_steps_and_only_a_smaller_log_is_enlarged() -> None:
    server = sqlserver(placement=FILES)
    assert statements(server.growth(Bytes(30 * GIB))) == (
        "ALTER DATABASE [tpcc] MODIFY FILE (NAME = [tpcc], FILEGROWTH = 256MB);",
        "ALTER DATABASE [tpcc] MODIFY FILE (NAME = [tpcc]]log], FILEGROWTH = 64MB);",
        "ALTER DATABASE [tpcc] MODIFY FILE (NAME = [tpcc]]log], SIZE = 30720MB);",
    )
    assert len(statements(server.growth(Bytes(GIB)))) == 2


def test_memory_is_capped_at_three_quarters_or_a_figure() -> None:
    server = sqlserver(memory=[(32 * GIB,)], memory_cap=[(2147483647 * 1024**2,)])
    assert "'max server memory (MB)', 24576;" in statements(server.cap_memory(None))[0]
    assert "'max server memory (MB)', 1024;" in statements(server.cap_memory(Bytes(GIB)))[0]
    with pytest.raises(ValueError, match="100 MiB: SQL Server needs at least 512 MiB"):
        server.cap_memory(Bytes(100 * 1024**2))
    memory = server.memory()
    assert not isinstance(memory, Unavailable)
    assert memory.machine == 32 * GIB
    assert memory.cap is None, "nobody has set it"


def test_memory_that_the_machine_has_not_is_refused() -> None:
    """PostgreSQL with such buffers does not start again."""
    server = sqlserver(memory=[(32 * GIB,)], memory_cap=[(GIB,)])
    with pytest.raises(ValueError, match="33 GiB: the server's machine has 32 GiB"):
        server.cap_memory(Bytes(33 * GIB))
    other = postgres(16, memory_cap=[(GIB,)], machine_memory=[(23 * GIB,)])
    with pytest.raises(ValueError, match="900 GiB: the server's machine has 23 GiB"):
        other.cap_memory(Bytes(900 * GIB))
    memory = other.memory()
    assert not isinstance(memory, Unavailable)
    assert memory.machine == 23 * GIB
    unknown = postgres(16, memory_cap=[(GIB,)], machine_memory=DENIED).cap_memory(Bytes(900 * GIB))
    assert isinstance(unknown, Change)
    assert unknown.notes[-1] == "whether its machine has so much memory is not known"


def test_a_machine_of_unknown_size_gives_no_rule() -> None:
    for answer in ([], [(0,)], [(None,)], DENIED):
        server = sqlserver(memory=answer, memory_cap=[(GIB,)])
        assert isinstance(server.cap_memory(None), Unavailable)
        memory = server.memory()
        assert not isinstance(memory, Unavailable)
        assert isinstance(memory.machine, Unavailable)


def test_file_io() -> None:
    row: Row = ("tpcc", "/data/tpcc.mdf", "ROWS", 10, 81920, 33, Decimal(7), Decimal(57344), 21)
    assert sqlserver(file_io=[row]).file_io() == [
        FileIo("/data/tpcc.mdf", "data", 10, 81920, 33.0, 7, 57344, 21.0)
    ]


def test_waits() -> None:
    rows: list[Row] = [("PAGEIOLATCH_SH", 5, 1200), ("WRITELOG", 2, 3)]
    assert sqlserver(waits=rows).waits() == [
        Wait("PAGEIOLATCH_SH", 5, 1200.0),
        Wait("WRITELOG", 2, 3.0),
    ]


def test_counters_give_the_hit_ratio_over_its_base() -> None:
    rows: list[Row] = [
        ("Batch Requests/sec", 1000, 272696576),
        ("Buffer cache hit ratio", 990, 537003264),
        ("Buffer cache hit ratio base", 1000, 1073939712),
        ("Page life expectancy", 300, 65792),
    ]
    assert sqlserver(counters=rows).counters() == [
        Counter("Batch Requests", 1000.0, gauge=False),
        Counter("Page life expectancy", 300.0, gauge=True),
        Counter("Buffer cache hit ratio", 0.99, gauge=True),
    ]
    without_base = sqlserver(counters=[rows[1], ("Buffer cache hit ratio base", 0, 1073939712)])
    assert without_base.counters() == []


@pytest.mark.parametrize("refusal", [DENIED, MISSING])
@pytest.mark.parametrize("verb", ["placement", "memory", "file_io", "waits", "counters"])
def test_a_refused_view_is_unavailable_with_the_servers_words(verb: str, refusal: Aborted) -> None:
    view = "memory_cap" if verb == "memory" else verb
    found = getattr(sqlserver(**{view: refusal}), verb)()
    assert isinstance(found, Unavailable)
    assert refusal.detail in found.unavailable
    assert "sys." in found.unavailable


@pytest.mark.parametrize("verb", ["placement", "memory", "file_io", "counters"])
def test_a_view_without_rows_is_unavailable(verb: str) -> None:
    found = getattr(sqlserver(**{"memory_cap" if verb == "memory" else verb: []}), verb)()
    assert isinstance(found, Unavailable)
    assert "needed" not in found.unavailable, "a compatible server shows `sa` none either"


def test_without_the_list_of_files_nothing_is_moved_or_grown() -> None:
    server = sqlserver(placement=DENIED)
    assert isinstance(server.move("/volume"), Unavailable)
    assert isinstance(server.growth(Bytes(GIB)), Unavailable)


def test_apply_runs_the_statements_in_order() -> None:
    canned = Canned("sqlserver", {})
    server = SqlServerEngine(canned, "tpcc")
    change = server.clear_cache()
    assert isinstance(change, Change)
    server.apply(change)
    server.close()
    assert canned.scripts == ["CHECKPOINT;", "DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS;"]
    assert canned.closed


# PostgreSQL


def test_postgres_buffers() -> None:
    server = postgres(16, memory_cap=[(128 * 1024**2,)])
    change = server.cap_memory(Bytes(GIB))
    assert statements(change) == ("ALTER SYSTEM SET shared_buffers = '1024MB'",)
    assert isinstance(change, Change)
    assert change.restart
    refused = server.cap_memory(None)
    assert isinstance(refused, Unavailable)
    assert "name the size" in refused.unavailable


def test_postgres_empties_its_buffers_from_17_on_with_the_extension() -> None:
    old = postgres(16).clear_cache()
    assert isinstance(old, Unavailable)
    assert "restart" in old.unavailable
    without = postgres(17, extension_schema=[]).clear_cache()
    assert isinstance(without, Unavailable)
    assert "pg_buffercache" in without.unavailable
    there: list[Row] = [("ext",)]
    of_17, of_18 = (
        statements(postgres(one, extension_schema=there).clear_cache())[1] for one in (17, 18)
    )
    assert "FROM ext.pg_buffercache" in of_17
    assert "ext.pg_buffercache_evict(" in of_18
    assert ("buffer_evicted" in of_17, "buffer_evicted" in of_18) == (False, True)


def test_postgres_times_that_are_not_measured_are_none() -> None:
    rows: list[Row] = [("relation", 5, 40960, None, 2, 16384, None), ("wal", 0, 0, 0.0, 1, 8, 1.5)]
    assert postgres(18, file_io_18=rows).file_io() == [
        FileIo("relation", "data", 5, 40960, None, 2, 16384, None),
        FileIo("wal", "log", 0, 0, 0.0, 1, 8, 1.5),
    ]


def test_postgres_refusals() -> None:
    for verb, view in (
        ("placement", "placement"),
        ("memory", "memory_cap"),
        ("file_io", "file_io_16"),
        ("counters", "counters"),
    ):
        found = getattr(postgres(16, **{view: DENIED}), verb)()
        assert isinstance(found, Unavailable)
        assert "permission was denied" in found.unavailable


# Differences


def test_differences_count_from_the_first_reading() -> None:
    before = [FileIo("a", "data", 10, 100, 5.0, 1, 10, None)]
    after = [FileIo("a", "data", 15, 180, 7.0, 1, 10, None), FileIo("b", "log", 1, 2, 3.0, 4, 5, 6)]
    assert difference(before, after) == [
        FileIo("a", "data", 5, 80, 2.0, 0, 0, None),
        after[1],
    ]
    assert difference([Wait("w", 5, 50.0)], [Wait("w", 7, 80.0)]) == [Wait("w", 2, 30.0)]


def test_a_restart_between_readings_counts_from_zero_and_gauges_stay() -> None:
    assert difference([Wait("w", 5, 50.0)], [Wait("w", 2, 9.0)]) == [Wait("w", 2, 9.0)]
    gauge = [Counter("ple", 300.0, gauge=True)]
    assert difference([Counter("ple", 100.0, gauge=True)], gauge) == gauge


# The statements


FOLDER = files("hotset.databases") / "sql"
ALL = [
    (dialect, file.name, file.read_text())
    for dialect, folder in (("tsql", "sqlserver"), ("postgres", "postgres"))
    for file in sorted((FOLDER / folder).iterdir(), key=lambda file: file.name)
]


def test_statements_parse(subtests: pytest.Subtests) -> None:
    for dialect, name, text in ALL:
        with subtests.test(dialect=str(dialect), name=str(name), text=str(text)):
            filled = text.format(
                database="[d]",
                name="x",
                path="'/p'",
                megabytes=5,
                setting="max_wal_size",
                schema="'s'",
                relation="'r'",
                table="N'[s].[r]'",
                column="'c'",
                top=5,
                most=5,
                seconds=10,
                place="ext",
                names="'orders'",
                benchmark="tpcc",
                whose="process 1 of db1",
                kind="TABLE",
                full_name="s.orders",
                mark="hotset",
            )
            parsed = sqlglot.parse(filled, dialect=dialect)
            assert [one for one in parsed if one is not None], name


OF_BOTH = frozenset(
    (
        *("configurations", "database_files", "databases", "dm_exec_sessions", "dm_os_sys_info"),
        *("extended_properties", "indexes", "master_files", "objects", "partitions", "schemas"),
    )
)
"""Views of SQL Server that Babelfish 4 has, too (its babelfishpg_tsql.sql, 4.X of October 2024)."""
MAY_BE_LACKING = {
    "benchmark_taken_by": {"dm_tran_locks"},
    "counters": {"dm_os_performance_counters"},
    "file_io": {"dm_io_virtual_file_stats"},
    "server_errors": {"dm_os_performance_counters"},
    "server_io": {"dm_io_virtual_file_stats"},
    "wait_classes": {"dm_os_wait_stats"},
    "waits": {"dm_os_wait_stats"},
}
"""What is told as not known on a server without them."""


def test_statements_ask_for_what_both_products_have() -> None:
    """One word of a statement ended every load on Babelfish at its begin."""
    packages = ("databases", "hammerdb", "tpcc", "tpch")
    asked = {
        file.name.removesuffix(".sql"): set(re.findall(r"(?i)\bsys\.(\w+)", file.read_text()))
        for package in packages
        for file in (files(f"hotset.{package}") / "sql" / "sqlserver").iterdir()
        if file.name.endswith(".sql")
    }
    beyond = {name: views - OF_BOTH for name, views in asked.items() if views - OF_BOTH}
    assert beyond == MAY_BE_LACKING


def test_no_statistics_of_every_row_become_those_of_a_sample() -> None:
    for package in ("databases", "tpcc", "tpch"):
        text = (files(f"hotset.{package}") / "sql" / "sqlserver" / "statistics.sql").read_text()
        for statement in re.findall(r"UPDATE STATISTICS [^']*|sp_updatestats.*", text):
            assert "WITH COLUMNS" in statement or "resample" in statement

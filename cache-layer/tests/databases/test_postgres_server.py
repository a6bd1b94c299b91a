"""The PostgreSQL server's files and commands: places, settings, and where the password goes."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from hotset.core.machines.base import CommandError, PrerequisiteMissingError
from hotset.core.units import Bytes
from hotset.databases.postgres.server import (
    Place,
    PostgresServer,
    load_settings,
    log_size,
    run_settings,
)
from tests.fake_machine import FakeMachine

MIB = 2**20
PASSWORD = "s3cret-and-long"  # noqa: S105 - of no server
PLACE = Place(
    PurePosixPath("/run/hotset-experiment/data"), PurePosixPath("/run/hotset-experiment/volume")
)
CONF = "/run/hotset-experiment/data/cluster/postgresql.conf"
HBA = "/run/hotset-experiment/data/cluster/pg_hba.conf"
SETTINGS = run_settings(Bytes(25 * MIB), 16, Bytes(128 * MIB))


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine(
        {
            "ls /usr/lib/postgresql": "9.6\n15\n17\n16\nnotes\n",
            "pg_ctl --version": "pg_ctl (PostgreSQL) 17.6\n",
        }
    )


@pytest.fixture
def server(machine: FakeMachine) -> PostgresServer:
    return PostgresServer(machine, PLACE, PASSWORD)


def settings_of(machine: FakeMachine) -> dict[str, str]:
    pairs = (line.split(" = ", 1) for line in machine.files[CONF][0].splitlines())
    return {key: value.strip("'") for key, value in pairs}


def test_the_password_goes_through_standard_input_only(
    machine: FakeMachine, server: PostgresServer
) -> None:
    server.create()
    server.start(SETTINGS)
    server.create_database("tpcc")
    server.trim_log()
    server.stop()
    assert not [line for line in machine.commands if PASSWORD in line]
    assert not [name for name, (text, _) in machine.files.items() if PASSWORD in text]
    told = [call for call in machine.calls if PASSWORD in (call.stdin or "")]
    assert len(told) == 1
    assert told[0].stdin == f"ALTER ROLE postgres PASSWORD '{PASSWORD}';"
    assert told[0].argv[0] == "/usr/lib/postgresql/17/bin/psql"
    assert told[0].argv[-2:] == ("-f", "-")
    assert told[0].user == "postgres"


def test_the_password_is_in_no_error(machine: FakeMachine, server: PostgresServer) -> None:
    machine.answers["psql"] = 1
    with pytest.raises(CommandError) as failed:
        server.start(SETTINGS)
    assert PASSWORD not in str(failed.value)


def test_the_server_runs_as_its_own_user(machine: FakeMachine, server: PostgresServer) -> None:
    server.create()
    server.start(SETTINGS)
    server.stop()
    for call in machine.calls:
        wanted = "postgres" if "/usr/lib/postgresql/17/bin" in call.argv[0] else None
        assert call.user == wanted


def test_data_lies_on_the_tier_and_log_and_temporary_space_on_the_volume(
    machine: FakeMachine, server: PostgresServer
) -> None:
    server.create()
    server.make_temporary_space()
    server.create_database("tpcc")
    initdb = next(call.argv for call in machine.calls if call.argv[0].endswith("/initdb"))
    assert initdb[initdb.index("--pgdata") + 1] == "/run/hotset-experiment/data/cluster"
    assert initdb[initdb.index("--waldir") + 1] == "/run/hotset-experiment/volume/wal"
    assert "--auth-host=scram-sha-256" in initdb
    statements = [call.stdin for call in machine.calls if call.argv[0].endswith("/psql")]
    assert statements == [
        "CREATE TABLESPACE hotset_temp LOCATION '/run/hotset-experiment/volume/temp';",
        "CREATE DATABASE tpcc;",
    ]
    for folder in (
        "/run/hotset-experiment/volume/wal",
        "/run/hotset-experiment/volume/temp",
        "/run/hotset-experiment/data/cluster",
    ):
        assert f"mkdir -p -m 700 {folder}" in machine.commands
        assert f"chown postgres:postgres {folder}" in machine.commands


def test_a_measured_run_bypasses_the_page_cache_and_is_durable(
    machine: FakeMachine, server: PostgresServer
) -> None:
    server.start(SETTINGS)
    found = settings_of(machine)
    assert found["debug_io_direct"] == "data,wal"
    assert found["temp_tablespaces"] == "hotset_temp"
    assert found["shared_buffers"] == "25MB"
    assert found["max_wal_size"] == "128MB"
    assert int(found["max_connections"]) > 16
    assert found["autovacuum"] == "off"
    assert found["password_encryption"] == "scram-sha-256"  # noqa: S105 - a method's name
    for unsafe in ("fsync", "synchronous_commit", "full_page_writes"):
        assert unsafe not in found, "the default is the safe one"
    assert machine.files[CONF][1] == 0o644


def test_twice_the_log_fits_its_volume_beside_temporary_space() -> None:
    assert [log_size(Bytes(size * MIB)) // MIB for size in (128, 143, 768)] == [32, 39, 352]


def test_a_small_volume_keeps_no_more_old_log_than_it_has_room_for() -> None:
    kept = {
        size: run_settings(Bytes(MIB), 1, Bytes(size * MIB))["min_wal_size"]
        for size in (32, 39, 352)
    }
    assert kept == {32: "32MB", 39: "39MB", 352: "80MB"}


def test_only_the_socket_goes_without_a_password(
    machine: FakeMachine, server: PostgresServer
) -> None:
    server.start(SETTINGS)
    assert machine.files[HBA][0].splitlines() == [
        "local all all peer",
        "host all all all scram-sha-256",
    ]


def test_settings_are_written_before_the_start(
    machine: FakeMachine, server: PostgresServer
) -> None:
    written: list[int] = []

    def note() -> str:
        written.append(len(machine.files))
        return ""

    machine.answers["pg_ctl -D"] = note
    server.start(SETTINGS)
    assert written == [2]


def test_small_buffers_are_what_the_server_takes_at_least() -> None:
    assert run_settings(Bytes(0), 1, Bytes(MIB))["shared_buffers"] == "16MB"


def test_a_load_may_be_unsafe_but_leaves_no_setting_to_the_run() -> None:
    assert load_settings(Bytes(384 * MIB), 20, Bytes(256 * MIB))["fsync"] == "off"
    assert "fsync" not in SETTINGS


def test_a_server_that_does_not_start_tells_why(
    machine: FakeMachine, server: PostgresServer
) -> None:
    machine.answers = {
        "pg_ctl -D /run/hotset-experiment/data/cluster -l": 1,
        "cat /run/hotset-experiment/data/cluster/server.log": "FATAL: could not bind",
    }
    with pytest.raises(CommandError) as failed:
        server.start(SETTINGS)
    assert any("could not bind" in note for note in failed.value.__notes__)
    assert not [call for call in machine.calls if PASSWORD in (call.stdin or "")]


@pytest.mark.parametrize(("mode", "seconds"), [("fast", 600), ("immediate", 30)])
def test_stop(machine: FakeMachine, server: PostgresServer, mode: str, seconds: int) -> None:
    server.stop(mode, seconds)
    assert machine.commands[-1] == (
        f"pg_ctl -D /run/hotset-experiment/data/cluster -m {mode} -w -t {seconds} stop"
    )


def test_the_newest_version_is_used(machine: FakeMachine, server: PostgresServer) -> None:
    assert server.version() == "17.6"
    assert machine.calls[-1].argv[0] == "/usr/lib/postgresql/17/bin/pg_ctl"


@pytest.mark.parametrize(
    ("found", "said"), [("", "there is none"), ("9.6\n13\n15\n", "the newest there is 15")]
)
def test_a_server_that_is_missing_or_too_old(found: str, said: str) -> None:
    with pytest.raises(PrerequisiteMissingError, match=f"PostgreSQL 16 or newer .*{said}.*apt-get"):
        PostgresServer(FakeMachine({"ls": found}), PLACE, PASSWORD)


def test_how_this_computer_reaches_a_database(server: PostgresServer) -> None:
    database = server.database("tpcc")
    assert (database.host, database.port, database.user) == ("127.0.0.1", 55432, "postgres")
    assert database.password == PASSWORD
    assert PASSWORD not in repr(database)

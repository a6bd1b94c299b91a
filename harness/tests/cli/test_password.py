"""A password is given in one way to every command: typed, of a file, of the environment, or
libpq's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli_server import CommandLine
from tests.postgres_cluster import PASSWORD, Cluster
from tests.pseudo_terminal import HOTSET, Terminal

pytestmark = pytest.mark.database
COMMANDS = (
    "database show --engine postgres",
    "warmup targets",
    "tpcc check",
    "tpch check",
)


def dsn(cluster: Cluster) -> str:
    return f"postgresql://tester@127.0.0.1:{cluster.port}/postgres"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_wants_one_is_told_with_every_way_to_give_it(
    hotset: CommandLine, cluster: Cluster, command: str
) -> None:
    """It was `fe_sendauth: no password supplied`, and no more."""
    done = hotset(*command.split(), "--dsn", dsn(cluster))
    assert done.code == 4
    assert "the server asks for a password" in done.err
    for way in ("HOTSET_PASSWORD", "--password-file", "~/.pgpass"):
        assert way in done.err


def test_a_password_file_the_environment_and_pgpass_let_in(
    hotset: CommandLine, cluster: Cluster, tmp_path: Path
) -> None:
    file, own = tmp_path / "password", tmp_path / "pgpass"
    file.write_text(PASSWORD)
    own.write_text(f"*:*:*:tester:{PASSWORD}\n")
    own.chmod(0o600)
    show = ("database", "show", "--engine", "postgres", "--dsn", dsn(cluster))
    assert hotset(*show, "--password-file", str(file)).code == 0
    assert hotset(*show, env={"HOTSET_PASSWORD": PASSWORD}).code == 0
    assert hotset(*show, env={"PGPASSFILE": str(own)}).code == 0


@pytest.mark.parametrize("command", ["database show --engine postgres", "warmup targets"])
def test_it_is_asked_for_on_a_terminal_once_and_not_shown(cluster: Cluster, command: str) -> None:
    argv = [str(HOTSET), *command.split(), "--dsn", dsn(cluster)]
    terminal = Terminal(argv, {**os.environ, "PGPASSFILE": "/nonexistent"}, 200)
    terminal.until_written("PostgreSQL's password of 'tester' at 127.0.0.1: ")
    terminal.press(f"{PASSWORD}\n")
    assert terminal.ended() == 0
    assert PASSWORD not in terminal.written
    assert terminal.written.count("password of") == 1


def test_one_that_is_wrong_is_the_servers_refusal(cluster: Cluster) -> None:
    argv = [str(HOTSET), "database", "show", "--engine", "postgres", "--dsn", dsn(cluster)]
    terminal = Terminal(argv, {**os.environ, "PGPASSFILE": "/nonexistent"}, 200)
    terminal.until_written("password of")
    terminal.press("another\n")
    assert terminal.ended() == 4
    assert "password authentication failed" in terminal.written

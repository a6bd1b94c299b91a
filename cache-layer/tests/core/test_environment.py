"""Secrets of the environment reach who needs them, and nobody else."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hotset.core import environment
from hotset.databases import connect

SECRET = "open-sesame"  # noqa: S105 - of a test
DSN = "host=127.0.0.1 port=1 user=tester dbname=shop"


def test_no_program_that_hotset_starts_gets_the_password(tmp_path: Path) -> None:
    folder, told = tmp_path / "bin", tmp_path / "told"
    folder.mkdir()
    for name in ("ls", "cat", "readlink", "find", "test"):
        program = folder / name
        program.write_text(f'#!/bin/sh\nenv >> {told}\nexec /bin/{name} "$@"\n')
        program.chmod(0o755)
    words = [sys.executable, "-c", "from hotset.cli import main; main()", "tier", "status"]
    more = {environment.PASSWORD: SECRET, "PATH": f"{folder}:{os.environ['PATH']}"}
    subprocess.run(words, env={**os.environ, **more}, check=False, timeout=120)
    said = told.read_text()
    assert f"PATH={folder}" in said
    assert SECRET not in said


def test_the_password_is_still_found_and_no_core_file_holds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "_kept", {})
    monkeypatch.setenv(environment.PASSWORD, SECRET)
    limit = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        environment.hide_password()
        assert environment.PASSWORD not in os.environ
        assert connect.database("postgres", DSN).password == SECRET
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limit)


def test_a_server_has_no_way_of_its_users_into_a_database() -> None:
    inherited = {"PGPASSWORD": SECRET, "PGSERVICE": "prod", "PGSSLMODE": "require", "HOME": "/root"}
    where = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGSYSCONFDIR", "PGSSLKEY")
    given = environment.of_server(inherited | dict.fromkeys(where, "x"))
    assert SECRET not in given.values()
    assert "PGSERVICE" not in given
    assert given.keys().isdisjoint(where), "a caller names where to, and as whom"
    assert (given["PGGSSENCMODE"], given["PGREQUIREAUTH"]) == ("disable", "!gss,!sspi")
    assert (given["PGSSLMODE"], given["HOME"]) == ("require", "/root")
    for name in ("PGPASSFILE", "PGSSLCERT"):
        assert not Path(given[name]).exists()

"""scripts/hotset-api.sh, and the PowerShell module where there is a pwsh, against a served API."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hotset.api import tokens
from hotset.core.rights import Right
from hotset.databases.postgres.client import PostgresDatabase
from tests import powershell
from tests.cli_server import XDG, plain_environment
from tests.powershell import MODULE

SCRIPT = MODULE.with_name("hotset-api.sh")
TESTS = MODULE.with_name("tests")
WRONG = "not-it"
# In front of the real program: writes down how it was called.
WATCHED = """#!/bin/sh
printf '%s\\n' "$0 $*" >> "$CALLS"
exec {program} "$@"
"""


@dataclass(frozen=True)
class Served:
    """A server of the tests' own. ``environment`` is a client's, without the token."""

    uri: str
    token: str
    environment: Mapping[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("served")
    environment = {**plain_environment(), **{name: str(root / name) for name in XDG}}
    with pytest.MonkeyPatch.context() as patch:
        for name in XDG:
            patch.setenv(name, environment[name])
        token = tokens.create("tests", Right.ADMIN)
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [sys.executable, str(Path(__file__).parents[1].joinpath("served_api.py")), str(port)]
    with subprocess.Popen(program, env=environment) as server:
        try:
            _wait(server, port)
            yield Served(f"http://127.0.0.1:{port}", token, environment)
        finally:
            server.terminate()


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"no server at port {port}")


@dataclass(frozen=True)
class Done:
    """What a call came to."""

    code: int
    out: str
    err: str


class Script:
    """hotset-api.sh for one server; curl and jq are watched."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.calls, self._served, self._folder = folder / "calls", served, folder
        (folder / "bin").mkdir()
        for name in ("curl", "jq"):
            program = shutil.which(name)
            assert program is not None, f"{name} is missing: apt-get install {name}"
            shim = folder / "bin" / name
            shim.write_text(WATCHED.format(program=program))
            shim.chmod(0o755)
        (folder / "token").write_text(f"{served.token}\n")

    def __call__(self, *argv: str, **variables: str) -> Done:
        environment = {
            **self._served.environment,
            "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "HOTSET_URI": self._served.uri,
            "HOTSET_TOKEN_FILE": str(self._folder / "token"),
            **variables,
        }
        done = subprocess.run(
            [str(SCRIPT), *argv],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def script(served: Served, tmp_path: Path) -> Script:
    return Script(served, tmp_path)


def test_it_connects_and_lists_what_there_is(script: Script, served: Served) -> None:
    connected = script("connect")
    assert connected.err == ""
    assert json.loads(connected.out)["uri"] == served.uri
    assert json.loads(script("get-run").out) == []
    assert isinstance(json.loads(script("get-job").out), list)
    assert served.token not in script.calls.read_text()
    assert "/api/v1/jobs" in script.calls.read_text()


def test_no_proxy_hears_of_a_token_in_plain(script: Script) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        done = script("connect", http_proxy=address, ALL_PROXY=address)
    assert (done.code, done.err) == (0, "")


@pytest.mark.night
def test_a_server_that_says_nothing_is_not_waited_for(script: Script) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        done = script("connect", HOTSET_URI=f"http://127.0.0.1:{mute.getsockname()[1]}")
    assert (done.code, "was not reached" in done.err) == (3, True)


@pytest.mark.parametrize(
    ("argv", "variables", "code", "words"),
    [
        (["connect"], {"HOTSET_URI": ""}, 2, "set HOTSET_URI"),
        (["connect"], {"HOTSET_URI": "http://db1:8480"}, 2, "in plain"),
        (["connect"], {"HOTSET_URI": "http://[::1]:1"}, 3, "http://[::1]:1 was not reached"),
        (["connect"], {"HOTSET_TOKEN_FILE": "/nowhere"}, 2, "HOTSET_TOKEN_FILE=/nowhere"),
        (["connect"], {"HOTSET_TOKEN": "hotset_wrong"}, 2, "the token is not known here"),
        (["conect"], {}, 2, "conect: no such command"),
        (["invoke-tpcc", "x", "--user", "8"], {}, 2, "--user: no such option here; there are: dsn"),
        (["invoke-tpcc", "x", "--seed", "many"], {}, 2, "--seed many: a number is needed"),
        (["invoke-tpcc", "x", "--users"], {}, 2, "--users needs a value"),
        (["invoke-tpcc", "x", "--password", "s"], {}, 2, "set HOTSET_PASSWORD_FILE"),
        (["invoke-tpcc", "postgresql://u:secret@h/d"], {}, 2, "--dsn holds a password"),
        (["wait-job"], {}, 2, "wait-job ID"),
        (["stop-job"], {}, 2, "name one: ID"),
        (["stop-job", "nobody"], {}, 2, "there is no job 'nobody'"),
        (["get-run", "last"], {}, 2, "no run"),
        (["compare-run", "a"], {}, 2, "name two runs or more"),
        (["get-warmup-plan", "orders"], {}, 2, "'orders'"),
        (["get-hit-ratio", "--by", "moon"], {}, 2, "by: 'moon' is refused"),
        (["set-sql-memory", "sqlserver://sa@h/d"], {}, 2, "to do it: add --yes"),
        (["get-run", "nobody"], {}, 2, "to make the first: invoke-demo"),
    ],
)
def test_one_clear_line_and_its_exit_code(
    script: Script, argv: list[str], variables: dict[str, str], code: int, words: str
) -> None:
    done = script(*argv, **variables)
    assert words in done.err
    assert done.code == code, done
    # curl has a line of its own where nobody answers.
    assert len(done.err.splitlines()) == 1 + (code == 3)
    assert done.out == ""


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("get-disk", ["disk", "machine"]),
        ("sync-tier", ["as-job", "disk", "machine"]),
        ("get-job", ["id", "limit"]),
        ("restore-snapshot", "as-job disk file machine method rate samples share".split()),  # noqa: SIM905
    ],
)
def test_a_command_lists_its_options(script: Script, command: str, options: list[str]) -> None:
    done = script(command, "--help", HOTSET_URI="")
    assert done.code == 0, done.err
    assert sorted(done.out.split()) == [f"--{one}" for one in options]


def _dsn(database: PostgresDatabase) -> str:
    return f"postgresql://{database.user}@{database.host}:{database.port}/{database.dbname}"


@pytest.mark.database
def test_a_database_is_asked_and_its_password_is_on_no_command_line(
    script: Script, database: PostgresDatabase, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text(f"{database.password}\n")
    done = script(
        "set-sql-memory",
        _dsn(database),
        "--engine",
        "postgres",
        "--size",
        "64MiB",
        "--dry-run",
        HOTSET_PASSWORD_FILE=str(file),
    )
    assert done.code == 0, done.err
    assert any("shared_buffers" in line for line in json.loads(done.out)["lines"])
    wrong = script(
        "set-sql-memory", _dsn(database), "--engine", "postgres", "--dry-run", HOTSET_PASSWORD=WRONG
    )
    assert wrong.code == 4
    assert " failed: " in wrong.err
    assert database.password not in script.calls.read_text() + done.out + done.err
    assert WRONG not in script.calls.read_text() + wrong.err


@pytest.mark.database
def test_tpcc_runs_and_a_job_is_stopped(script: Script, database: PostgresDatabase) -> None:
    common = (
        "invoke-tpcc",
        _dsn(database),
        "--warehouses",
        "2",
        "--users",
        "2",
        "--rampup",
        "0",
        "--no-check",
    )
    password = {"HOTSET_PASSWORD": database.password}
    done = script(*common, "--duration", "1", **password)
    assert done.code == 0, done.err
    (measured,) = json.loads(done.out)["arms"][0]["repeats"]
    assert measured["nopm"] > 0
    assert measured["users"] == 2
    assert "NOPM" in done.err
    job = json.loads(script(*common, "--duration", "600", "--as-job", **password).out)
    assert job["state"] == "running"
    late = script("wait-job", job["id"], "--timeout", "1")
    assert (late.code, late.out) == (124, "")
    assert json.loads(script("stop-job", job["id"]).out)["id"] == job["id"]
    stopped = script("wait-job", job["id"])
    assert stopped.code == 130
    assert "was interrupted: " in stopped.err.splitlines()[-1]
    assert json.loads(script("get-job", job["id"]).out)["state"] == "interrupted"


# The module, by the PowerShell that is here


class Deaf(BaseHTTPRequestHandler):
    """Some other program: it answers, and says nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def untrusted(tmp_path: Path) -> Iterator[str]:
    """The address of one whose certificate nobody knows."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost")
    files = ("-keyout", str(key), "-out", str(cert))
    subprocess.run([*made, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Deaf) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_the_modules_own_tests_pass_in_powershell(
    served: Served, untrusted: str, tmp_path: Path
) -> None:
    """One start for all: what the module makes of answers, what it refuses, what errors hold."""
    shell = powershell.shell()
    run = f"Import-Module Pester -ErrorAction Stop; Invoke-Pester -Path '{TESTS}' -CI"
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        places = {
            "URI": served.uri,
            "UNTRUSTED_URI": untrusted,
            "SILENT_URI": f"http://127.0.0.1:{silent.getsockname()[1]}",
            # Where PowerShell keeps what it has found out about its modules.
            "XDG_CACHE_HOME": str(Path.home() / ".cache"),
        }
        done = subprocess.run(
            [shell, "-NoProfile", "-NonInteractive", "-Command", run],
            env={**served.environment, **places, "TOKEN": served.token},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr


LIVE = Path(__file__).parents[1].joinpath("powershell_live.ps1")


@pytest.mark.database
def test_the_module_runs(served: Served, database: PostgresDatabase) -> None:
    shell = shutil.which("pwsh") or shutil.which("powershell")
    if shell is None:
        pytest.skip("no PowerShell here: https://aka.ms/install-powershell")
    variables = {
        "URI": served.uri,
        "TOKEN": served.token,
        "DB_USER": database.user,
        "DB_PASSWORD": database.password,
        "DSN": f"postgresql://{database.host}:{database.port}/{database.dbname}",
    }
    done = subprocess.run(
        [shell, "-NoProfile", "-NonInteractive", "-File", str(LIVE), str(MODULE)],
        env={**served.environment, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    # What -WhatIf says stands before it.
    found = json.loads(done.stdout[done.stdout.index("\n{") :])
    assert found["problems"] == [
        f"Hotset.{name}"
        for name in (
            "NotConnected",
            "Unencrypted",
            "Http401",
            "Timeout",
            "JobFailed",
            "Http404",
            "Http404",
            "Http404",
            "Http422",
            "JobFailed",
            "PasswordInDsn",
        )
    ]
    assert found["uri"] == served.uri
    assert (found["runs"], found["nothing"], found["stopped"]) == (0, True, True)
    assert found["nopm"] > 0
    assert found["kinds"] == ["Hotset.TpccRun", "Double", "DateTime"]
    assert found["states"] == ["running", "interrupted"]
    assert any("shared_buffers" in line for line in found["memory"])
    assert any("hotset_temp" in line for line in found["tempdb"])
    assert "tpcc run" in found["table"]
    assert "five transactions" in found["help"]
    assert database.password not in done.stdout

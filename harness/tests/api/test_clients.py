"""The API as its page calls it with curl, and the PowerShell module, against a served API."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hotset import __version__
from hotset.console import app
from hotset.console.pages.powershell import PLACE
from hotset.databases.postgres.product import PostgresDatabase
from tests import powershell
from tests.amiss_api import amiss
from tests.api_server import Served, serving
from tests.cli_server import XDG, plain_environment
from tests.powershell import MODULE

PAGE = MODULE.parents[1] / "docs/console-and-api.md"
TESTS = MODULE.with_name("tests")
HOTSET = str(Path(sys.executable).with_name("hotset"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("served")
    with serving({**plain_environment(), **{name: str(root / name) for name in XDG}}) as found:
        yield found


def block_of_the_page() -> str:
    """The three acts."""
    text = PAGE.read_text(encoding="utf-8").partition("### The three acts with curl")[2]
    return text.partition("```\n")[2].partition("```")[0]


@pytest.mark.database
def test_the_three_acts_of_the_page(
    served: Served, database: PostgresDatabase, tmp_path: Path
) -> None:
    """As they stand, but for names; no disk is accelerated here, which two of them are told."""
    (tmp_path / "password").write_text(f"{database.password}\n")
    dsn = f"postgresql://{database.user}@{database.host}:{database.port}/{database.dbname}"
    block = block_of_the_page()
    for old, new in (
        ("http://127.0.0.1:8480", served.uri),
        ("hotset console token create nightly --right operate", f"echo {served.token}"),
        ("postgresql://shop@db1/shop", dsn),
        ('users: "8", warehouses: 10', 'users: "2", warehouses: 2, rampup: 0, duration: 1'),
    ):
        assert old in block
        block = block.replace(old, new)
    done = subprocess.run(
        ["sh", "-c", block],
        env=served.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    no_hit_ratio, nopm = done.stdout.splitlines()
    assert no_hit_ratio == "null"
    assert float(nopm) > 0
    warmed_up, not_found = done.stderr.splitlines()
    assert "disk 'shop' is not accelerated" in warmed_up
    assert "404" in not_found
    assert database.password not in done.stdout + done.stderr
    assert (tmp_path / "curlrc").stat().st_mode & 0o077 == 0


# The module, by the PowerShell that is here


class Deaf(BaseHTTPRequestHandler):
    """Some other program: it answers, and says nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def untrusted(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of one whose certificate nobody knows, and the certificate's SHA-256."""
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
            digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(cert.read_text())).hexdigest()
            shown = ":".join(re.findall("..", digest.upper()))
            yield f"https://127.0.0.1:{server.server_port}", shown
        finally:
            server.shutdown()
            thread.join()


def test_the_modules_own_tests_pass_in_powershell(
    served: Served, untrusted: tuple[str, str], tmp_path: Path
) -> None:
    """One start for all: what the module makes of answers, what it refuses, what errors hold."""
    shell = powershell.shell()
    run = f"Import-Module Pester -ErrorAction Stop; Invoke-Pester -Path '{TESTS}' -CI"
    run += " -ExcludeTagFilter Night"
    with closing(socket.create_server(("127.0.0.1", 0))) as silent, amiss() as (wrong, _):
        places = {
            "URI": served.uri,
            "UNTRUSTED_URI": untrusted[0],
            "UNTRUSTED_SHA256": untrusted[1],
            "SILENT_URI": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "AMISS_URI": wrong,
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
    shell = powershell.shell()
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
            "NotLoaded",
            "PasswordInDsn",
            "Http403",
            # The same in a request and in a job.
            *("UnknownDisk", "UnknownDisk"),
            *("LogIn", "LogIn"),
            *("UnknownDatabase", "UnknownDatabase"),
            # Memory that its machine has not.
            "JobFailed",
        )
    ]
    assert found["uri"] == served.uri
    assert (found["runs"] > 0, found["nothing"], found["stopped"]) == (True, True, True)
    assert found["nopm"] > 0
    assert found["kinds"] == ["Hotset.TpccRun", "Double", "DateTime"]
    assert found["states"] == ["running", "interrupted"]
    assert any("shared_buffers" in line for line in found["memory"])
    assert re.search("900 TiB: the server's machine has [0-9]", found["refused"])
    assert "tpcc-run" in found["table"]
    assert "five transactions" in found["help"]
    assert database.password not in done.stdout


# The module as a console hands it out


@contextmanager
def console(root: Path) -> Iterator[str]:
    """A console of its own, in an empty home; its address."""
    (root / "password").write_text("a-password-of-the-tests\n")
    home = {"HOTSET_CONSOLE_PASSWORD_FILE": str(root / "password")}
    program = [HOTSET, "console", "--port", "0"]
    environment = {**_home_of(root), **home}
    with subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = server.stderr.readline()
            while said and "hotset console: " not in said:
                said = server.stderr.readline()
            yield re.search(r"http://[0-9.:]+", said)[0]  # type: ignore[index]
        finally:
            server.terminate()


def _home_of(root: Path) -> dict[str, str]:
    """The environment of somebody whose home it is."""
    kept = {name: value for name, value in plain_environment().items() if name not in XDG}
    return {**kept, "HOME": str(root)}


def _lines_of_the_page(address: str) -> str:
    """The lines that the console's page has to type."""
    text = (Path(app.__file__).parent / "templates/powershell.html").read_text(encoding="utf-8")
    block = text.partition('id="install">')[2].partition("</pre>")[0]
    place = f"{address}{PLACE}"
    return re.sub(
        r"\{\{ address( \|[^}]*)? \}\}",
        lambda found: address if found[1] else place,
        block,
    )


def test_the_module_is_installed_from_a_console_as_its_page_says(tmp_path: Path) -> None:
    """In an empty home; it is of that console's version, and connects to it."""
    shell = powershell.shell()
    with console(tmp_path) as address:
        made = subprocess.run(
            [HOTSET, "console", "token", "create", "desk"],
            env=_home_of(tmp_path),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        page = _lines_of_the_page(address)
        script = page.replace("(Read-Host Token -AsSecureString)", "$secret")
        given = "$secret = ConvertTo-SecureString $env:TOKEN -AsPlainText -Force\n"
        tell = "\nGet-Module Hotset | ForEach-Object { $_.ModuleBase }"
        done = subprocess.run(
            [shell, "-NoProfile", "-NonInteractive", "-Command", given + script + tell],
            env={**_home_of(tmp_path), "TOKEN": made.stdout.strip()},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.stderr == ""
    assert done.stdout.strip().splitlines()[-1].startswith(str(tmp_path))
    assert __version__ in done.stdout

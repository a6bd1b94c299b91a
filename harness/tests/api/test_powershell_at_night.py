"""The PowerShell module where things go wrong, or are unlike here: it runs in `make test-all`."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from hotset.databases.postgres.product import PostgresDatabase
from tests import powershell
from tests.amiss_api import amiss
from tests.api_server import Served, serving
from tests.cli_server import XDG, plain_environment
from tests.powershell import MODULE

pytestmark = pytest.mark.night
TESTS = MODULE.with_name("tests")
PAGE = MODULE.parents[1] / "docs/powershell.md"
_CONNECT = "$token = ConvertTo-SecureString $env:TOKEN -AsPlainText -Force; "


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("served")
    return {**plain_environment(), **{name: str(root / name) for name in XDG}}


@pytest.fixture(scope="module")
def served(environment: dict[str, str]) -> Iterator[Served]:
    with serving(environment) as found:
        yield found


def variables(served: Served, **more: str) -> dict[str, str]:
    cache = {"XDG_CACHE_HOME": str(Path.home() / ".cache")}
    return {**served.environment, **cache, "URI": served.uri, "TOKEN": served.token, **more}


def run(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    argv = [powershell.shell(), "-NoProfile", "-NonInteractive", "-Command"]
    return subprocess.run(
        [*argv, f"Import-Module '{MODULE}'; {script}"],
        env=environment,
        # Pester leaves its results there.
        cwd=environment["XDG_DATA_HOME"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_sessions_at_once_jobs_of_powershell_and_cultures(served: Served) -> None:
    pester = f"Import-Module Pester; Invoke-Pester -Path '{TESTS}' -CI -TagFilter Night"
    done = run(pester, variables(served))
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """Take what it is sent, and answer nothing; its address, and what it was sent."""
    sent: list[bytes] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    sent.append(connection.recv(65536))

        Thread(target=listen, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", sent
        server.shutdown(socket.SHUT_RDWR)


def test_no_proxy_is_used_but_the_one_that_was_asked_for(served: Served) -> None:
    """HTTP_PROXY is that of whoever logs in, and would read the token of a plain connection."""
    with proxy() as (address, sent):
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        named = variables(served, **dict.fromkeys(names, address))
        script = (
            f"{_CONNECT}(Connect-Hotset $env:URI -Token $token).Right; "
            "try { Connect-Hotset https://127.0.0.1:1 -Token $token } "
            "catch { $_.FullyQualifiedErrorId }"
        )
        done = run(script, named)
        assert done.stdout.splitlines() == ["admin", "Hotset.NotReached,Connect-Hotset"]
        assert sent == []
        asked = f"{_CONNECT}try {{ Connect-Hotset db1 -Token $token -Proxy {address} }} "
        done = run(f"{asked} catch {{ $_.FullyQualifiedErrorId }}", named)
        assert done.stdout.splitlines() == ["Hotset.NotReached,Connect-Hotset"]
        assert sent
        assert sent[0].startswith(b"CONNECT db1:8480 ")
        assert not [one for one in sent if served.token.encode() in one]


@pytest.mark.database
def test_a_console_that_is_killed_while_it_is_asked(
    environment: dict[str, str], database: PostgresDatabase
) -> None:
    """The wait goes on with the next one; nothing of the job is lost, nothing is started twice."""
    with serving(environment) as first:
        more = {
            "DSN": f"postgresql://{database.host}:{database.port}/{database.dbname}",
            "DB_USER": database.user,
            "DB_PASSWORD": database.password,
        }
        script = (
            f"{_CONNECT}$null = Connect-Hotset $env:URI -Token $token; "
            "$login = New-Object pscredential $env:DB_USER,"
            " (ConvertTo-SecureString $env:DB_PASSWORD -AsPlainText -Force); "
            "$job = Invoke-HotsetTpcc $env:DSN -Credential $login -DurationSeconds 600 -NoCheck"
            " -Users 1 -Warehouses 1 -RampupSeconds 0 -AsJob; "
            "$job.Id; "
            'try { $job | Wait-HotsetJob -ErrorAction Stop 3>&1 | ForEach-Object { "$_" } }'
            " catch { $_.FullyQualifiedErrorId }; "
            "@(Get-HotsetJob | Where-Object Verb -eq 'tpcc run').Count"
        )
        argv = [powershell.shell(), "-NoProfile", "-NonInteractive", "-Command"]
        with subprocess.Popen(
            [*argv, f"Import-Module '{MODULE}'; {script}"],
            env=variables(first, **more),
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdout is not None
            id_ = client.stdout.readline().strip()
            assert "tpcc-run" in id_
            first.process.kill()
            first.process.wait()
            lost = client.stdout.readline()
            assert "Trying again" in lost
            with serving(environment, int(first.uri.rpartition(":")[2])):
                argv = [powershell.hotset(), "jobs", "cancel", id_]
                subprocess.run(argv, env=environment, check=True, capture_output=True)
                rest = client.stdout.read().split()
    assert "Hotset.JobFailed,Wait-HotsetJob" in rest
    assert rest[-1] == "1"


def block_of_the_page(heading: str) -> str:
    text = PAGE.read_text(encoding="utf-8").partition(f"## {heading}")[2]
    return text.partition("```powershell\n")[2].partition("```")[0]


@pytest.mark.database
def test_before_and_after_as_the_page_has_it(
    served: Served, database: PostgresDatabase, tmp_path: Path
) -> None:
    """As it stands, but for names, sizes and the two lines that need a disk; by the token of a file
    that Export-Clixml wrote, in the database that New-HotsetTpccDatabase returned."""
    block = block_of_the_page("Before and after")
    assert len(block.splitlines()) <= 15
    dsn = f"postgresql://{database.host}:{database.port}/{database.dbname}"
    for old, new in (
        ("Connect-Hotset db1", f"Connect-Hotset {served.uri}"),
        ("C:\\jobs\\hotset.xml", f"{tmp_path}/hotset.xml"),
        ("sqlserver://db1/tpcc?trust=yes", dsn),
        ("Get-Credential sa", "$login"),
        ("Users = 32; Warehouses = 100", "Users = 1; Warehouses = 1"),
        ("RampupSeconds = 300; DurationSeconds = 900", "RampupSeconds = 0; DurationSeconds = 1"),
        ("after.html", f"{tmp_path}/after.html"),
    ):
        assert old in block
        block = block.replace(old, new)
    needs_disk = re.compile(r"^(Set-HotsetTier|\$null = Start-HotsetWarmup) .*\n", re.MULTILINE)
    assert len(needs_disk.findall(block)) == 2
    script = (
        f"{_CONNECT}$token | Export-Clixml '{tmp_path}/hotset.xml'; "
        f"$null = Connect-Hotset {served.uri} -Token $token; "
        "$login = New-Object pscredential $env:DB_USER,"
        " (ConvertTo-SecureString $env:DB_PASSWORD -AsPlainText -Force)\n"
        f"$made = New-HotsetTpccDatabase {dsn} -Credential $login -Warehouses 1 -Replace"
        " -Confirm:$false\n"
        '"$($made.PSObject.TypeNames[0]) $($made.Dsn)"\n'
        "$test = $made | Test-HotsetTpccDatabase -Credential $login; @($test).Count\n"
        + needs_disk.sub("", block)
    )
    login = {"DB_USER": database.user, "DB_PASSWORD": database.password}
    done = run(script, variables(served, **login))
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Hotset.Database postgresql://")
    assert lines[1] == "12"
    assert "Verdict" in done.stdout
    assert (tmp_path / "after.html").stat().st_size > 10_000


@pytest.mark.parametrize("how", ["silent", "stuck"])
@pytest.mark.parametrize(
    "asked", ["Get-HotsetJob {}", "Wait-HotsetJob {}", "Get-HotsetHitRatio {} -Wait"]
)
def test_ctrl_c_ends_the_wait_for_a_server_that_hangs(served: Served, how: str, asked: str) -> None:
    with amiss() as (address, waits):
        script = f"{_CONNECT}$null = Connect-Hotset {address} -Token $token; "
        argv = [powershell.shell(), "-NoProfile", "-NonInteractive", "-Command"]
        with subprocess.Popen(
            [*argv, f"Import-Module '{MODULE}'; {script}{asked.format(how)}; 'went on'"],
            env=variables(served),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as client:
            assert waits.wait(120)
            client.send_signal(signal.SIGINT)
            said, _ = client.communicate(timeout=60)
    assert "went on" not in said
    assert ("Stop-HotsetJob" in said) == asked.startswith("Wait-")


def test_what_redirects_or_is_a_page_gets_the_token_once_and_nobody_else(served: Served) -> None:
    """A redirect is not followed: where it leads would get the token."""
    with proxy() as (elsewhere, sent), closing(socket.create_server(("127.0.0.1", 0))) as server:

        def answer() -> None:
            for body in (
                f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}/\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
            ):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(body.encode())

        Thread(target=answer, daemon=True).start()
        place = f"http://127.0.0.1:{server.getsockname()[1]}"
        one = (
            f"try {{ Connect-Hotset {place} -Token $token }} catch {{ $_.FullyQualifiedErrorId }}; "
        )
        done = run(f"{_CONNECT}{one}{one}", variables(served))
    assert done.stdout.splitlines() == ["Hotset.NotHotset,Connect-Hotset"] * 2
    assert sent == []

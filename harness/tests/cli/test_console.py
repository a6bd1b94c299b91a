"""``hotset console`` before it serves: where it listens, and its password."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from hotset.console import passwords
from tests.cli_server import CommandLine
from tests.console_browser import PASSWORD, served


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--bind", "0.0.0.0"], "lets other computers connect: give --cert and --key, or add"),  # noqa: S104
        (["--bind", "::"], "lets other computers connect"),
        (["--bind", "db1"], "'db1' is not an address"),
        (["--cert", __file__], "--cert and --key go together"),
        (["--machine", "db1"], "--machine: 'db1' is not a machine: write local"),
        (["--public-url", "http://db1"], "'http://db1': write https:// and a name"),
        (["--public-url", "db1"], "'db1': write https:// and a name"),
        (["--public-url", "https://db1/hotset"], "cannot be below a path"),
        (["--public-url", "https://db1:x"], "write https:// and a name"),
        (["--port", "70000"], "should be less than or equal to 65535"),
    ],
)
def test_where_it_does_not_listen(hotset: CommandLine, argv: list[str], said: str) -> None:
    done = hotset("console", *argv)
    assert done.code == 2
    assert said in " ".join(done.err.replace("│", " ").split())


def test_without_a_terminal_it_needs_a_file_for_its_first_password(hotset: CommandLine) -> None:
    done = hotset("console")
    assert done.code == 3
    assert "hotset console password --password-file" in done.err
    short = hotset("console", env={"HOTSET_CONSOLE_PASSWORD_FILE": "/dev/null"})
    assert short.code == 2
    assert "holds no password" in short.err


def test_a_port_that_is_taken_is_named(hotset: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("long enough a password\n")
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = hotset(
            "console", "--port", str(port), env={"HOTSET_CONSOLE_PASSWORD_FILE": str(file)}
        )
    assert done.code == 3
    assert f"--port {port}" in done.err
    assert "in use" in done.err


def cipher(port: int, offered: str) -> str:
    """What TLS 1.2 agrees on with a client that offers these."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(offered)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as line,
        context.wrap_socket(line) as opened,
    ):
        agreed = opened.cipher()
        assert agreed is not None
        return agreed[0]


@pytest.mark.usefixtures("own_folders")
def test_tls_lets_other_computers_in_and_keeps_the_cookie_to_itself(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            str(key),
            "-out",
            str(cert),
        ],
        check=True,
        capture_output=True,
    )
    options = ("--bind=0.0.0.0", f"--cert={cert}", f"--key={key}")
    with served(tmp_path, "local", None, *options) as console:
        assert console.url.startswith("https://0.0.0.0:")
        trusted = ssl.create_default_context(cafile=str(cert))
        answer = httpx.get(console.url.replace("0.0.0.0", "127.0.0.1") + "/login", verify=trusted)  # noqa: S104
        port = int(console.url.rpartition(":")[2].strip("/"))
        agreed = cipher(port, "HIGH:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError):
            cipher(port, "eNULL:aNULL:AES256-SHA:ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0")
    assert re.fullmatch("ECDHE-ECDSA-(AES(128|256)-GCM|CHACHA20)-.*", agreed)
    assert answer.status_code == 200
    assert "Secure" in answer.headers["set-cookie"]
    assert "max-age" in answer.headers["strict-transport-security"]


@pytest.mark.usefixtures("own_folders")
def test_a_proxy_may_have_the_certificate(tmp_path: Path) -> None:
    with served(tmp_path, "local", None, "--public-url=https://console.example.org/") as console:
        assert console.url.startswith("http://127.0.0.1:")
        named = {"Host": "console.example.org"}
        answer = httpx.get(f"{console.url}/login", headers=named)
        assert answer.status_code == 200
        assert "Secure" in answer.headers["set-cookie"]


def test_a_password_is_kept_as_a_hash_for_its_owner_alone(
    hotset: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("too short\n")
    assert "take 10 or more" in hotset("console", "password", "--password-file", str(file)).err
    file.write_text("long enough a password\n")
    assert hotset("console", "password", "--password-file", str(file)).code == 0
    kept = Path(hotset.environment["XDG_DATA_HOME"]) / "hotset/console/password"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    text = kept.read_text().strip()
    assert text.startswith("$argon2id$")
    assert passwords.matches("long enough a password", text)
    assert not passwords.matches("long enough a passwore", text)


@pytest.mark.usefixtures("own_folders")
def test_it_ends_at_once_and_without_a_word_while_people_watch(tmp_path: Path) -> None:
    """``served`` asks for code 0 and nothing said."""
    with served(tmp_path) as console, httpx.Client(base_url=console.url, timeout=20) as browser:
        token = re.search(r'name="csrf" value="(\w+)"', browser.get("/login").text)
        assert token is not None
        given = browser.post("/login", data={"password": PASSWORD, "csrf": token[1]})
        assert given.status_code == 303
        # Closed after the console has ended, not before.
        stream = browser.send(browser.build_request("GET", "/overview/live"), stream=True)
        lines = stream.iter_lines()
        while next(lines) != "event: sample":
            pass
        os.kill(console.pid, signal.SIGINT)
        begun = time.monotonic()
        assert list(lines)[-1] == "", "the stream is ended, not torn off"
        assert time.monotonic() - begun < 10

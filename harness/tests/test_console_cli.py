"""``hotset console`` before it serves: where it listens, and its password."""

from __future__ import annotations

import socket
import stat
from contextlib import closing
from pathlib import Path

import pytest

from hotset.harness.console import passwords
from tests.cli_server import CommandLine


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--bind", "0.0.0.0"], "lets other computers in: give --cert and --key, or say"),  # noqa: S104
        (["--bind", "::"], "lets other computers in"),
        (["--bind", "db1"], "'db1' is not an address"),
        (["--cert", __file__], "--cert and --key go together"),
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


def test_a_password_is_kept_as_a_hash_for_its_owner_alone(hotset: CommandLine,
                                                          tmp_path: Path) -> None:  # fmt: skip
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

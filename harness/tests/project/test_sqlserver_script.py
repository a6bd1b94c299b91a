"""scripts/sqlserver.sh and compose.yaml, with stand-ins that write down what they are asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import processes

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "sqlserver.sh"
PASSWORD = "s3cret;}{"  # noqa: S105
STAND_IN = """#!/bin/sh
[ "$*" = "compose version" ] && exit 0
printf '%s %s\\n' "$(basename "$0")" "$*" >> "$LOG"
env | grep -q "^HOTSET_PASSWORD=" && printf 'has a password\\n' >> "$LOG"
[ "$(basename "$0") $2" = "hotset show" ] || exit 0
[ -e "$LOG.up" ] || { touch "$LOG.up"; exit 4; }
exit 0
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("docker", "hotset"):
        (folder / name).write_text(STAND_IN)
        (folder / name).chmod(0o755)
    for name in ("data", "volume"):
        (tmp_path / name).mkdir()
    return tmp_path / "log"


def run(log: Path, verb: str, **variables: str) -> subprocess.CompletedProcess[str]:
    folder = log.parent
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MSSQL_", "HOTSET_")) and name != "ACCEPT_EULA"
    }
    environment = {
        **plain,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "LOG": str(log),
        **variables,
    }
    return processes.run([str(SCRIPT), verb], env=environment)


def everything(log: Path) -> dict[str, str]:
    folder = log.parent
    return {
        "ACCEPT_EULA": "Y",
        "MSSQL_SA_PASSWORD": PASSWORD,
        "HOTSET_DATA": str(folder / "data"),
        "HOTSET_VOLUME": str(folder / "volume"),
    }


def test_up_waits_makes_the_database_moves_tempdb_and_caps_memory(log: Path) -> None:
    done = run(log, "up", **everything(log))
    assert done.returncode == 0, done.stderr
    text = log.read_text()
    asked = [line for line in text.splitlines() if line != "has a password"]
    expected = [
        "docker compose up --detach",
        "hotset database show",
        "hotset database show",
        "docker compose exec",
        "hotset database memory",
        "hotset database place",
        "docker compose restart sqlserver",
        "hotset database show",
        "hotset database show",
    ]
    steps = [line for line in asked if line.startswith(("docker", "hotset"))]
    assert len(steps) == len(expected), text
    for line, beginning in zip(steps, expected, strict=True):
        assert line.startswith(beginning)
    assert "sqlserver://sa@127.0.0.1:1433/tpcc?encrypt=yes&trust=yes --folder /volume" in text
    assert "has a password" in text
    assert PASSWORD not in text + done.stdout + done.stderr


def test_the_password_may_lie_in_a_file(log: Path) -> None:
    file = log.parent / "password"
    file.write_text(PASSWORD + "\n")
    variables = {**everything(log), "MSSQL_SA_PASSWORD": "", "MSSQL_SA_PASSWORD_FILE": str(file)}
    assert run(log, "up", **variables).returncode == 0
    assert PASSWORD not in log.read_text()


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("ACCEPT_EULA", "set ACCEPT_EULA=Y if you accept"),
        ("MSSQL_SA_PASSWORD", "set MSSQL_SA_PASSWORD or MSSQL_SA_PASSWORD_FILE"),
        ("HOTSET_DATA", "set HOTSET_DATA: a folder on the accelerated disk"),
        ("HOTSET_VOLUME", "set HOTSET_VOLUME: a folder on the flash volume"),
    ],
)
def test_what_is_missing_is_said_before_anything_starts(
    log: Path, missing: str, words: str
) -> None:
    variables = everything(log)
    del variables[missing]
    done = run(log, "up", **variables)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not log.exists()


def test_usage(log: Path) -> None:
    done = run(log, "sideways")
    assert done.returncode == 2
    assert "up|down|status" in done.stderr
    odd = run(log, "up", **everything(log), HOTSET_DATABASE="a'; DROP")
    assert odd.returncode == 2
    assert "HOTSET_DATABASE" in odd.stderr


def test_shell_is_clean() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    done = subprocess.run(["shellcheck", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def _compose() -> list[str]:
    """Compose as a plugin or as the program of old; neither needs Docker's daemon for `config`."""
    for argv in (["docker", "compose"], ["docker-compose"]):
        if (
            shutil.which(argv[0])
            and not subprocess.run([*argv, "version"], capture_output=True, check=False).returncode
        ):
            return argv
    pytest.skip("no docker compose here")


def _config(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **variables}
    return processes.run([*_compose(), "-f", str(ROOT / "compose.yaml"), "config"], env=environment)


FULL = {"ACCEPT_EULA": "Y", "MSSQL_SA_PASSWORD": "x", "HOTSET_DATA": "/d", "HOTSET_VOLUME": "/v"}


def test_compose_is_valid_and_its_defaults_are_express_on_loopback() -> None:
    done = _config(**FULL)
    assert done.returncode == 0, done.stderr
    for words in ("mssql/server:2022-latest", "MSSQL_PID: Express", "source: /d", "source: /v"):
        assert words in done.stdout
    assert "127.0.0.1" in done.stdout
    newer = _config(**FULL, MSSQL_TAG="2025-latest", MSSQL_PID="Developer")
    assert "mssql/server:2025-latest" in newer.stdout
    assert "MSSQL_PID: Developer" in newer.stdout


@pytest.mark.parametrize("missing", FULL)
def test_compose_accepts_and_assumes_nothing(missing: str) -> None:
    done = _config(**{name: value for name, value in FULL.items() if name != missing})
    assert done.returncode != 0
    assert f"set {missing}" in done.stderr


def test_every_variable_of_compose_is_explained_in_it() -> None:
    text = (ROOT / "compose.yaml").read_text()
    used = set(re.findall(r"\$\{([A-Z_]+)", text))
    assert used == set(re.findall(r"^#   ([A-Z_]+) ", text, re.MULTILINE))

"""PostgreSQL's own pgbench: where it is."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from hotset.core import environment
from hotset.core.machines.base import NotInstalledError, PrerequisiteMissingError

VARIABLE, PROGRAM = "PGBENCH", "pgbench"
OLDEST = 15
"""The first that counts a deadlock as a failed transaction instead of giving the user up."""
_REMEDY = (
    "apt-get install postgresql (Red Hat: postgresql-contrib), or name the program, for instance"
    f" export {VARIABLE}=/usr/lib/postgresql/17/bin/{PROGRAM}"
)
_FOLDERS = ("lib/postgresql/*/bin", "pgsql-*/bin")
"""Folders of the server's own programs below /usr: Debian's and postgresql.org's for Red Hat."""
_PROBE_S = 60.0


@dataclass(frozen=True, slots=True)
class Pgbench:
    """An installed pgbench."""

    program: Path
    version: str


def find(given: Mapping[str, str] = os.environ, usr: Path = Path("/usr")) -> Pgbench:
    """The one that ``PGBENCH`` names, or the newest beside a server's programs, or the one on PATH.

    :param given: the environment.
    :raises PrerequisiteMissingError: there is none, or none that is new enough; says what to do.
    """
    beside = [path for each in _FOLDERS for path in usr.glob(f"{each}/{PROGRAM}")]
    newest = max(beside, key=lambda path: _major(path.parent.parent.name), default=None)
    program = given.get(VARIABLE) or newest or which(PROGRAM, path=given.get("PATH"))
    if not program:
        raise NotInstalledError(f"{PROGRAM} is missing: {_REMEDY}")
    version = _version(Path(program))
    if _major(version) < OLDEST:
        raise PrerequisiteMissingError(
            f"{program} is of PostgreSQL {version}, and {OLDEST} or newer is needed: {_REMEDY}"
        )
    return Pgbench(Path(program), version)


def _major(text: str) -> int:
    match = re.search(r"[0-9]+", text)
    return int(match[0]) if match else 0


def _version(program: Path) -> str:
    """:raises PrerequisiteMissingError: it does not start."""
    try:
        output = call(program, "--version")
    except (OSError, subprocess.SubprocessError) as error:
        raise PrerequisiteMissingError(f"{program} does not start ({error}): {_REMEDY}") from None
    match = re.search(r"\(PostgreSQL\) (\S+)", output)
    if match is None:
        raise PrerequisiteMissingError(f"{program} names no version of PostgreSQL: {_REMEDY}")
    return match[1]


def call(program: Path, *argv: str, folder: Path | None = None) -> str:
    """Return the program's output, whatever its exit code."""
    return subprocess.run(
        [program, *argv],
        cwd=folder,
        env=environment_of(""),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_PROBE_S,
        check=False,
    ).stdout


def environment_of(password: str) -> dict[str, str]:
    """The environment of pgbench, which says its own words in English.

    :param password: empty: it is left to libpq.
    """
    kept = {name: text for name, text in os.environ.items() if name != environment.PASSWORD}
    return {**kept, "LC_ALL": "C", **({"PGPASSWORD": password} if password else {})}

"""Where the user's HammerDB is, and what it can reach."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hotset.core.machines.base import PrerequisiteMissingError

HOME_VARIABLE = "HAMMERDB_HOME"
PROGRAM = "hammerdbcli"
_REMEDY = (
    "unpack HammerDB 6 for Linux (hammerdb.com) and name its folder,"
    f" for instance export {HOME_VARIABLE}=/opt/HammerDB-6.0"
)
_PROBE_S = 60.0
_LIBRARIES = {"PostgreSQL": "PostgreSQL", "MSSQLServer": "SQL Server"}


@dataclass(frozen=True, slots=True)
class Release:
    """An installed release: the folder that holds ``hammerdbcli``."""

    home: Path

    @property
    def program(self) -> Path:
        """The command-line program. It finds its own parts only from its own folder."""
        return self.home / PROGRAM


@dataclass(frozen=True, slots=True)
class Abilities:
    """The capabilities that a release reports.

    databases  those of hotset whose client library it loads
    lacks      why it does not load the others
    """

    version: str
    databases: tuple[str, ...]
    lacks: tuple[str, ...]


def find(environment: Mapping[str, str] = os.environ) -> Release:
    """The release that ``HAMMERDB_HOME`` names.

    :raises PrerequisiteMissingError: it names none, or no usable one; says what to do.
    """
    named = environment.get(HOME_VARIABLE, "")
    if not named:
        raise PrerequisiteMissingError(f"{HOME_VARIABLE} is not set: {_REMEDY}")
    release = Release(Path(named).absolute())
    if not release.program.is_file():
        raise PrerequisiteMissingError(
            f"{HOME_VARIABLE}={named} holds no program {PROGRAM}: {_REMEDY}"
        )
    if not os.access(release.program, os.X_OK):
        raise PrerequisiteMissingError(
            f"{release.program} is not executable: chmod +x {release.program}"
        )
    return release


def examine(release: Release) -> Abilities:
    """Start HammerDB and ask for its version and libraries (some seconds).

    :raises PrerequisiteMissingError: it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="hotset-hammerdb-") as folder:
        script = Path(folder) / "check.tcl"
        script.write_text("librarycheck\n")
        try:
            done = subprocess.run(
                command(release, script),
                cwd=release.home,
                env=environment_of(Path(folder)),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PrerequisiteMissingError(
                f"{release.program} did not answer within {_PROBE_S:.0f} s"
            ) from None
        except OSError as error:
            raise PrerequisiteMissingError(
                f"{release.program} cannot be started: {error.strerror}"
            ) from None
    return abilities(release, done.stdout, done.stderr)


def abilities(release: Release, output: str, errors: str = "") -> Abilities:
    """Read the answer to ``librarycheck``.

    :raises PrerequisiteMissingError: it is none.
    """
    version = version_in(output)
    if version is None:
        lines = (errors or output).strip().splitlines()
        raise PrerequisiteMissingError(
            f"{release.program} does not start: {lines[0] if lines else 'it said nothing'}"
        )
    loaded = re.findall(r"^Success \.\.\. loaded library \S+ for (\w+)", output, re.MULTILINE)
    names = tuple(label for name, label in _LIBRARIES.items() if name in loaded)
    return Abilities(version, names, tuple(_refusals(output)))


def _refusals(output: str) -> Iterator[str]:
    """Why the libraries of hotset's databases do not load."""
    for name, label in _LIBRARIES.items():
        match = re.search(
            rf"^Checking database library for {name}\nError: failed to load (.*)$",
            output,
            re.MULTILINE,
        )
        if match:
            yield f"not for {label} ({match[1]})"


def version_in(output: str) -> str | None:
    """The version in HammerDB's first line.

    >>> version_in("HammerDB CLI v6.0")
    '6.0'
    """
    match = re.search(r"HammerDB CLI v(\S+)", output)
    return match[1] if match else None


def command(release: Release, script: Path) -> list[str]:
    """The argv of one batch call."""
    return [str(release.program), "tcl", "auto", str(script)]


def environment_of(scratch: Path) -> dict[str, str]:
    """The environment of one batch call: HammerDB keeps its state in ``TMP`` between calls.

    Its SQLite tables are stamped in local time; ``TZ`` makes that UTC.
    """
    return {**os.environ, "TMP": str(scratch), "TMPDIR": str(scratch), "TZ": "UTC"}

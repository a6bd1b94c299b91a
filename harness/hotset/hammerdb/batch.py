"""One batch call of HammerDB: its folder, its script, its supervision, what is kept of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hotset.databases.product import SqlDatabase
from hotset.load.supervised import Supervised

from . import jobs, script, settings
from .jobs import JobRecord
from .process.failures import HammerdbFailed, HammerdbRefused
from .process.output import Line, Message, UserError, parse
from .process.watch import Watch, agree, require_success
from .release import Release, command, environment_of, version_in
from .settings import PASSWORD_VARIABLE, Dictionary

Observer: TypeAlias = Callable[[Line], None]
SCRIPT, LOG, RECORD = "script.tcl", "output.log", "hammer.sqlite"
"""Files in the folder of a run; none of them holds a password."""
_PROBE_S = 60.0
_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Batch:
    """The inputs of one call.

    folder   of this run alone: new or empty
    stall_s  how long a run may make no progress
    """

    release: Release
    connection: SqlDatabase
    folder: Path
    stall_s: float
    observe: Observer = lambda _: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A call that ended well.

    edges   when the monitor crossed "rampup", "measure", "done": seconds since 1970
    failed  transactions that users reported as failed
    """

    lines: tuple[Line, ...]
    record: JobRecord
    edges: dict[str, float]
    failed: int


def execute(batch: Batch, dictionary: Dictionary, text: str, users: int) -> Outcome:
    """Run one script to its good end; script, log and record stay in the folder either way.

    :param text: the script; its workload is the dictionary's.
    :param users: virtual users that must succeed.
    :raises HammerdbFailed: it did not; a note names the log.
    """
    workload: settings.Workload = "TPC-C" if "tpcc" in dictionary else "TPC-H"
    with _workplace(batch) as scratch:
        check_settings(batch, scratch, workload, dictionary)
        (batch.folder / SCRIPT).write_text(text, encoding="utf-8")
        watch = Watch(batch.stall_s)
        for line in _follow(batch, scratch, batch.folder / SCRIPT, watch):
            batch.observe(line)
        job = require_success(watch.lines, users)
        record = jobs.read(scratch / jobs.FILE, job)
        agree(watch.lines, record.lines)
        return Outcome(tuple(watch.lines), record, watch.edges, watch.errors.total())


@contextmanager
def _workplace(batch: Batch) -> Iterator[Path]:
    """A fresh TMP for HammerDB within the run's folder; leaves what is worth keeping of it."""
    batch.folder.mkdir(parents=True, exist_ok=True)
    if any(batch.folder.iterdir()):
        raise HammerdbRefused(f"folder {batch.folder} is not empty: give each run one of its own")
    scratch = batch.folder / "tmp"
    scratch.mkdir(mode=0o700)
    try:
        yield scratch
    except HammerdbFailed as error:
        error.add_note(f"HammerDB's output: {batch.folder / LOG}")
        raise
    finally:
        try:
            jobs.keep(scratch / jobs.FILE, batch.folder / RECORD, batch.connection.password)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def check_settings(
    batch: Batch, scratch: Path, workload: settings.Workload, dictionary: Dictionary
) -> None:
    """Compare HammerDB's own list of settings with ours, before anything is touched."""
    probe = scratch / "probe.tcl"
    probe.write_text(script.probe(batch.connection.hammerdb, workload), encoding="utf-8")
    watch, lines = Watch(_PROBE_S), []
    with Supervised(
        command(batch.release, probe), batch.release.home, environment_of(scratch), scratch
    ) as process:
        for raw in process.lines(_POLL_S):
            if raw is None:
                watch.silence()
            else:
                lines.append(raw.strip("\r"))
    output = "\n".join(lines)
    # The run's own takes its place.
    (batch.folder / LOG).write_text(output, encoding="utf-8")
    version, printed = version_in(output), settings.parse_printed(output)
    if version is None:
        raise HammerdbFailed(f"HammerDB does not start: {lines[0] if lines else 'it said nothing'}")
    if not printed:
        last = next((line for line in reversed(lines) if line.strip()), "")
        raise HammerdbFailed(f"HammerDB {version} does not print its settings: {last}")
    settings.compare(dictionary, printed, version)


def _follow(batch: Batch, scratch: Path, file: Path, watch: Watch) -> Iterator[Line]:
    """Start the script; log, watch and pass on its lines until it ends."""
    secret = batch.connection.password
    argv, home = command(batch.release, file), batch.release.home
    environment = {**environment_of(scratch), PASSWORD_VARIABLE: secret}
    # Opened for the owner alone: HammerDB's words are not ours.
    descriptor = os.open(batch.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with (
        os.fdopen(descriptor, "w", encoding="utf-8", buffering=1) as log,
        Supervised(argv, home, environment, scratch) as process,
    ):
        for raw in process.lines(_POLL_S):
            if raw is None:
                watch.silence()
                continue
            # HammerDB quotes the connection string, password and all, when SQL Server refuses.
            clean = raw.replace(secret, "***") if secret else raw
            log.write(f"{clean.strip()}\n")
            line = parse(raw)
            if isinstance(line, Message | UserError):
                line = parse(clean)
            watch.take(line)
            yield line
    watch.silence()

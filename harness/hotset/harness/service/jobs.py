"""Long verbs as jobs: child processes that outlive the server, the browser and the shell.

A job is a folder below ``data_dir()/jobs/``, for this user alone: ``job.json`` (what was asked,
without secrets), ``process`` (its id and when it started), ``out`` (its standard output), ``err``
(its events), and in the end ``code``. Its state is told from these and from the process, so that
nothing has to be remembered by whoever started it.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hotset.cachelayer.paths import data_dir, write_whole
from hotset.cachelayer.takedown import start_time
from hotset.harness.archive import new_folder
from hotset.harness.cli.codes import INTERRUPTED
from hotset.harness.service import child, events, outcome, verbs
from hotset.harness.service.events import Event
from hotset.harness.service.now import PROGRAM, failure
from hotset.harness.service.verbs import Call, RefusedError, Words

SCHEMA_VERSION = 1
AT_ONCE = 8
State = Literal["running", "done", "failed", "interrupted", "lost"]
_JOB, _PROCESS, _OUT, _ERR = "job.json", "process", "out", "err"
# As much of the end of what was said as tells the latest figure and the last lines.
_TAIL_BYTES, _LINES = 16 * 1024, 20
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]{0,99}", re.ASCII)
_POLL_S = 0.25
_STARTING_S = 10.0
_GONE = "gone"
"""In place of when a process began: it had ended by the time it was looked at."""


class NoSuchJobError(ValueError):
    """No job of that name; the message says how to see those there are."""


class JobConflictError(ValueError):
    """A job cannot be started, or removed, while another runs; the message names it."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stood when it was looked at.

    :ivar values: what was asked, without secrets.
    :ivar machine: as ``--machine`` names it; empty where the verb has none.
    :ivar started: when, with its time zone.
    :ivar code: the verb's exit code; None while it runs, and when it was lost.
    :ivar progress: the latest figure; empty when there was none.
    :ivar said: the last lines that were said, why it failed among them.
    :ivar tick: the latest second of TPC-C, if that is what it does now.
    """

    id: str
    words: Words
    values: Mapping[str, Any]
    machine: str
    started: datetime
    state: State
    code: int | None
    progress: str
    said: tuple[str, ...]
    tick: Mapping[str, Any] | None

    @property
    def verb(self) -> str:
        return " ".join(self.words)

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def figures(self) -> Mapping[str, str]:
        """What it came to, where its result has such figures. Reads that result: a list of jobs
        shows it, others do not ask."""
        if self.state == "done" and self.words in outcome.HAVE_FIGURES:
            with suppress(NoSuchJobError):
                return outcome.figures(result(self))
        return {}

    @property
    def latest(self) -> str:
        """How far it is, or what it came to, in one line."""
        if self.running and self.progress:
            return self.progress
        figures = self.figures
        if figures:
            return ", ".join(f"{name} {value}" for name, value in figures.items())
        return self.said[-1] if self.said else ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "id": self.id, "verb": self.verb, "values": dict(self.values), "machine": self.machine,
            "started": self.started.isoformat(), "state": self.state, "code": self.code,
            "progress": self.progress, "said": list(self.said),
        }  # fmt: skip


def start(words: Words, values: Mapping[str, Any], strict: bool = True) -> Job:
    """Start a verb as a job.

    :raises UnknownVerbError: there is none of that name.
    :raises RefusedError: the verb does not take these values, or is none for a job.
    :raises JobConflictError: another job has the same disk, database or lab.
    """
    verb = verbs.find(words)
    if verb.kind != "job":
        raise RefusedError(f"`{verb.name}` answers at once: it is not a job")
    call = verb.call(values, strict)
    with _alone():
        _require_free(call)
        folder = new_folder(_folder(), "-".join(words), datetime.now(UTC), 0o700)
        _spawn(folder, call)
    return find(folder.name)


def every() -> list[Job]:
    """All jobs that are kept, the newest first."""
    names = sorted((path.parent.name for path in _folder().glob(f"*/{_JOB}")), reverse=True)
    found = []
    for name in names:
        with suppress(NoSuchJobError):
            found.append(find(name))
    return found


def running() -> list[Job]:
    """Those that are at work, the newest first; those that have ended are not even looked at."""
    names = sorted((path.parent.name for path in _folder().glob(f"*/{_JOB}")
                    if not (path.parent / child.CODE).exists()), reverse=True)  # fmt: skip
    found = []
    for name in names:
        with suppress(NoSuchJobError):
            found.append(find(name))
    return [job for job in found if job.running]


def find(id_: str) -> Job:
    """A job by its id; ``last`` is the newest.

    :raises NoSuchJobError: there is none.
    """
    folder = _of(id_)
    try:
        kept = json.loads((folder / _JOB).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _unknown(id_) from None
    if kept.get("schema_version") != SCHEMA_VERSION:
        raise NoSuchJobError(f"job {id_} is of another version of hotset: remove {folder}")
    code, state = _state(folder)
    said = _tail(folder)
    lines = [event.text for event in said if event.kind in ("say", "task", "error")]
    if state == "lost":
        lines.append("its process ended without a word: it was killed, or the computer went down")
    figures = [event.text for event in said if event.kind in ("figure", "tick")]
    return Job(
        folder.name, tuple(kept["words"]), kept["values"], kept["machine"],
        datetime.fromisoformat(kept["started"]), state, code,
        figures[-1] if figures else "", tuple(lines[-_LINES:]),
        said[-1].tick if said and state == "running" else None,
    )  # fmt: skip


def cancel(id_: str) -> Job:
    """Interrupt a job, as Ctrl-C does: the verb takes down what it made, which may take a while.

    A job that has ended stays as it is.
    """
    job = find(id_)
    process = _process(_of(job.id))
    if job.running and process is not None:
        with suppress(ProcessLookupError):
            os.killpg(process[0], signal.SIGINT)
    return find(job.id)


def remove(id_: str) -> None:
    """Forget a job that has ended.

    :raises JobConflictError: it is running.
    """
    job = find(id_)
    if job.running:
        raise JobConflictError(f"job {job.id} is running: cancel it first")
    shutil.rmtree(_of(job.id))


def result(job: Job) -> Any | None:  # noqa: ANN401 - what the verb prints
    """What a job printed, as JSON has it; ``{"lines": […]}`` of a verb that prints lines; None
    while it runs, and where it printed nothing."""
    try:
        text = (_of(job.id) / _OUT).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise _unknown(job.id) from None
    if job.running or not text.strip():
        return None
    with suppress(ValueError):
        return json.loads(text)
    return {"lines": text.splitlines()}


def cause(job: Job) -> str:
    """Why a job failed, in one line; empty of one that did not."""
    if job.state in ("running", "done"):
        return ""
    if job.state == "lost":
        return job.said[-1]
    return failure(job.code or 1, _tail(_of(job.id))).detail


async def follow(id_: str, after: int = 0) -> AsyncIterator[Event]:
    """A job's events as they come, from the beginning, until it has ended: the last is an ``end``.

    A job that is removed meanwhile has no ``end``: there is nobody left to tell how it ended.

    :param after: the id of the last event that is known already.
    :raises NoSuchJobError: there is none.
    """
    at, folder = max(0, after), _of(find(id_).id)
    while folder.exists():
        # The state first: it was said before the process ended, or is read in the next round.
        _, state = _state(folder)
        said = _read(folder, at)
        for event in said:
            at = event.id
            yield event
        if state != "running" and not said:
            with suppress(NoSuchJobError):
                yield Event(at, None, "end", cause(find(folder.name)), state=state)
            return
        await asyncio.sleep(_POLL_S)


def _spawn(folder: Path, call: Call) -> None:
    kept = {
        "schema_version": SCHEMA_VERSION, "words": call.verb.words, "values": dict(call.values),
        "machine": _machine(call), "started": datetime.now().astimezone().isoformat(),
    }  # fmt: skip
    write_whole(folder / _JOB, json.dumps(kept, indent=1))
    with (folder / _OUT).open("wb") as out, (folder / _ERR).open("wb") as err:
        process = subprocess.Popen(
            [*PROGRAM, *call.argv], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            env={**call.environment, child.JOB_VARIABLE: str(folder)}, start_new_session=True,
        )  # fmt: skip
    write_whole(folder / _PROCESS, f"{process.pid} {start_time(process.pid) or _GONE}\n")
    # A parent has to wait for its children, or they stay as zombies.
    threading.Thread(target=process.wait, name=folder.name, daemon=True).start()


def _require_free(call: Call) -> None:
    """:raises JobConflictError: a running job has what this one needs."""
    wanted = claim(call.verb.words, call.values, _machine(call))
    at_work = running()
    for job in at_work:
        if wanted is not None and clash(wanted, claim(job.words, job.values, job.machine)):
            raise JobConflictError(f"job {job.id} (`{job.verb}`) is at work on the same {wanted}:"
                                   " wait for it, or cancel it")  # fmt: skip
    if len(at_work) >= AT_ONCE:
        raise JobConflictError(
            f"{len(at_work)} jobs are running, which is as many as may be; wait for one, or cancel"
            f" one: {', '.join(job.id for job in at_work)}"
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """What a job needs for itself: something of a place; ``name`` is None for all of it."""

    place: str
    name: str | None = None

    def __str__(self) -> str:
        return self.place if self.name is None else f"{self.place}: {self.name}"


def claim(words: Words, values: Mapping[str, Any], machine: str) -> Claim | None:
    """What a job needs for itself, if anything."""
    match words:
        case ("experiment", "plan"):
            return None
        case ("demo" | "experiment" | "lab" | "disk", *_):
            return Claim("lab")
        case ("tier", "destroy"):
            return Claim(f"machine {machine}")
        case ("tier", *_) | ("warmup", "run" | "restore"):
            return Claim(f"machine {machine}", values.get("disk"))
        case ("tpcc" | "tpch" | "database", *_):
            return Claim("database", values["dsn"])
    return None


def clash(one: Claim | None, other: Claim | None) -> bool:
    """Whether two jobs need the same. A disk that is not named may be any of its machine's."""
    if one is None or other is None or one.place != other.place:
        return False
    return one.name is None or other.name is None or one.name == other.name


def _machine(call: Call) -> str:
    if "machine" not in call.verb.parameters:
        return ""
    default = call.verb.model.model_fields["machine"].default
    return str(call.values.get("machine") or os.environ.get("HOTSET_MACHINE") or default)


def _state(folder: Path) -> tuple[int | None, State]:
    """The exit code, and what it means."""
    alive = _alive(folder)
    # After the process: one that has just ended has left its code.
    with suppress(FileNotFoundError, ValueError):
        code = int((folder / child.CODE).read_text())
        return code, "interrupted" if code == INTERRUPTED else "failed" if code else "done"
    return None, "running" if alive else "lost"


def _alive(folder: Path) -> bool:
    process = _process(folder)
    if process is None:
        # Its starter writes that down at once, unless it was killed in between.
        with suppress(FileNotFoundError):
            return time.time() - (folder / _JOB).stat().st_mtime < _STARTING_S
        return False
    return start_time(process[0]) == process[1]


def _process(folder: Path) -> tuple[int, str] | None:
    with suppress(FileNotFoundError, ValueError):
        pid, started = (folder / _PROCESS).read_text().split()
        return int(pid), started
    return None


def _read(folder: Path, begin: int, limit: int = 1 << 20) -> list[Event]:
    """What was said from there on, whole lines only."""
    with suppress(FileNotFoundError), (folder / _ERR).open("rb") as file:
        file.seek(begin)
        whole = file.read(limit).rpartition(b"\n")
        return events.parse(whole[0] + whole[1], begin)
    return []


def _tail(folder: Path) -> list[Event]:
    """The last events."""
    with suppress(FileNotFoundError):
        begin = max(0, (folder / _ERR).stat().st_size - _TAIL_BYTES)
        # Where it begins amid a line, that one is left out.
        return _read(folder, begin, _TAIL_BYTES)[begin > 0 :]
    return []


def _of(id_: str) -> Path:
    """A job's folder, which may not be there. No other folder can be named."""
    if id_ == "last":
        id_ = max((path.parent.name for path in _folder().glob(f"*/{_JOB}")), default="last")
    if not _ID.fullmatch(id_):
        raise _unknown(id_)
    return _folder() / id_


def _unknown(id_: str) -> NoSuchJobError:
    return NoSuchJobError(f"job {id_!r}: there is none of that name; `hotset jobs list` shows all")


def _folder() -> Path:
    folder = data_dir() / "jobs"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def _alone() -> Iterator[None]:
    """One start at a time, whoever starts: two must not both find a disk free."""
    with (_folder() / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""Long operations as jobs: child processes that outlive the server, the browser and the shell.

A job is a folder below ``data_dir()/jobs/``, for this user alone: ``job.json`` (the request,
without secrets), ``process`` (its id and when it started), ``out`` (its result), ``err`` (its
events), and in the end ``figures`` and ``code``. Its state is told from these and from the process,
so that nothing has to be remembered by whoever started it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hotset.core import record
from hotset.core.environment import of_server
from hotset.core.errors import INTERRUPTED, NotFoundError, PrerequisiteError, Remedy
from hotset.core.machines.local import start_time
from hotset.core.operation import Lock, conflict
from hotset.core.paths import data_dir, lock_file, write_whole
from hotset.reports.archive import new_folder

from . import events
from .events import Event

SCHEMA_VERSION = 1
AT_ONCE = 8
KEPT, KEPT_S = 500, 90 * 24 * 3600
"""So many jobs are kept, so long; older ones that have ended go when the next one starts."""
State = Literal["running", "done", "failed", "interrupted", "lost"]
JOB_VARIABLE, CODE, FIGURES = "HOTSET_JOB", "code", "figures"
"""Where the child is told its folder, and what it leaves there."""
ENDINGS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end a job in good order."""
_JOB, _PROCESS, _OUT, _ERR = "job.json", "process", "out", "err"
# As much of the end of what was said as tells the latest figure and the last lines.
_TAIL_BYTES, _LINES = 16 * 1024, 20
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]{0,99}", re.ASCII)
_POLL_S = 0.25
_STARTING_S = 10.0
_UNKNOWN = ("unknown",)
"""In place of what a job does that another version of hotset has started."""
_GONE = "gone"
"""In place of when a process began: it had ended by the time it was looked at."""


class NoSuchJobError(NotFoundError):
    """No job of that name; the message says how to see those there are."""


class JobConflictError(PrerequisiteError):
    """A job cannot be started, or removed, while another runs; the message names it."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stood when it was looked at.

    :ivar values: the request's values, without secrets.
    :ivar machine: the value of ``--machine``; empty where the verb has none.
    :ivar started: when, with its time zone.
    :ivar ended: when; None while it runs, and when it was lost.
    :ivar code: the verb's exit code; None while it runs, and when it was lost.
    :ivar progress: the latest figure; empty when there was none.
    :ivar measured: how far the step at work is: ``done``, ``total``, ``unit``, ``eta_s``, each None
        where it cannot be known.
    :ivar said: the last lines that were said, why it failed among them.
    :ivar tick: the latest second of TPC-C, if that is what it does now.
    """

    id: str
    words: tuple[str, ...]
    values: Mapping[str, Any]
    machine: str
    started: datetime
    ended: datetime | None
    state: State
    code: int | None
    progress: str
    measured: Mapping[str, Any]
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
        """Values of its result by name, in words; empty where its result has none."""
        if self.state == "done":
            with suppress(FileNotFoundError, ValueError):
                figures: dict[str, str] = json.loads((_of(self.id) / FIGURES).read_text())
                return figures
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
        """Return the job as JSON has it."""
        return {
            "id": self.id,
            "verb": self.verb,
            "values": dict(self.values),
            "machine": self.machine,
            "started": self.started.isoformat(),
            "ended": None if self.ended is None else self.ended.isoformat(),
            "state": self.state,
            "code": self.code,
            "progress": self.progress,
            **self.measured,
            "said": list(self.said),
        }


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a job.

    :ivar values: of its request, without secrets.
    :ivar machine: its name in requests; empty where there is none.
    :ivar lock: the lock that it needs.
    """

    words: tuple[str, ...]
    values: Mapping[str, Any]
    machine: str
    lock: Lock | None


def start(
    task: Task,
    module: str,
    request: str,
    before: Callable[[str], None] = lambda id_: None,  # noqa: ARG005
) -> Job:
    """Start a job.

    :param module: of Python, to be run: it reads the request and leaves result and code.
    :param request: its standard input, with the secrets, which are nowhere else.
    :param before: is told its id before it begins; where that raises, nothing is started.
    :raises JobConflictError: another job has the same disk, database or lab.
    """
    with _alone():
        _prune()
        _require_free(task)
        folder = new_folder(_folder(), "-".join(task.words), datetime.now(UTC), 0o700)
        try:
            before(folder.name)
        except BaseException:
            folder.rmdir()
            raise
        _spawn(folder, task, module, request)
    return find(folder.name)


def every(limit: int | None = None) -> list[Job]:
    """The jobs that are kept, the newest first."""
    jobs = []
    for name in _names()[:limit]:
        with suppress(NoSuchJobError):
            jobs.append(find(name))
    return jobs


def running() -> list[Job]:
    """List the jobs at work, the newest first; those that have ended are not even read."""
    names = sorted(
        (
            path.parent.name
            for path in _folder().glob(f"*/{_JOB}")
            if not (path.parent / CODE).exists()
        ),
        reverse=True,
    )
    jobs = []
    for name in names:
        with suppress(NoSuchJobError):
            jobs.append(find(name))
    return [job for job in jobs if job.running]


def find(id_: str) -> Job:
    """A job by its id; ``last`` is the newest.

    :raises NoSuchJobError: there is none.
    """
    folder = _of(id_)
    try:
        kept = json.loads((folder / _JOB).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _unknown(id_) from None
    code, state = _state(folder)
    if kept.get("schema_version") != SCHEMA_VERSION:
        return _of_another_version(folder, kept.get("schema_version"), code, state)
    events = _tail(folder)
    lines = [event.text for event in events if event.kind in ("say", "task", "error")]
    if state == "lost":
        lines.append("its process ended without a word: it was killed, or the computer went down")
    figures = [event.text for event in events if event.kind in ("figure", "tick")]
    return Job(
        folder.name,
        tuple(kept["words"]),
        kept["values"],
        kept["machine"],
        datetime.fromisoformat(kept["started"]),
        _end_of(folder),
        state,
        code,
        figures[-1] if figures else "",
        _measurements(events, state),
        tuple(lines[-_LINES:]),
        events[-1].tick if events and state == "running" else None,
    )


def _of_another_version(folder: Path, version: object, code: int | None, state: State) -> Job:
    """A job of which nobody knows here what it is to do, and on what."""
    message = record.unknown(
        folder, record.expected_version(version, SCHEMA_VERSION), "once it has ended"
    )
    began = datetime.fromtimestamp((folder / _JOB).stat().st_mtime).astimezone()
    known = (began, _end_of(folder), state, code)
    return Job(
        folder.name, _UNKNOWN, {}, "", *known, "", _measurements([], state), (message,), None
    )


def _end_of(folder: Path) -> datetime | None:
    """When it left its code."""
    with suppress(FileNotFoundError):
        return datetime.fromtimestamp((folder / CODE).stat().st_mtime).astimezone()
    return None


def _measurements(logged: list[Event], state: State) -> dict[str, Any]:
    """How far the step at work is; a step that has begun since has not been measured yet."""
    latest = next(
        (event for event in reversed(logged) if event.kind in ("figure", "tick", "task")), None
    )
    if latest is None or state != "running":
        return dict.fromkeys(events.MEASURED)
    return {name: getattr(latest, name) for name in events.MEASURED}


def problem(job: Job) -> dict[str, Any] | None:
    """Why a job failed, as far as hotset foresaw it: ``message``, ``field`` and ``remedies``."""
    if job.state in ("running", "done"):
        return None
    errors = [event for event in _tail(_of(job.id)) if event.kind == "error" and event.message]
    if not errors:
        return None
    last = errors[-1]
    return {"message": last.message, "field": last.field, "remedies": last.remedies or []}


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
        raise JobConflictError(
            f"job {job.id} is running", Remedy("interrupt it", "jobs cancel", {"job": job.id})
        )
    shutil.rmtree(_of(job.id))


def result(job: Job) -> Any | None:  # noqa: ANN401 - what JSON has
    """A job's result; None while it runs, and where it has none."""
    try:
        text = (_of(job.id) / _OUT).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise _unknown(job.id) from None
    if job.running or not text.strip():
        return None
    with suppress(ValueError):
        return json.loads(text)
    # Of a program that printed into it before it died.
    return {"lines": text.splitlines()}


def cause(job: Job) -> str:
    """Why a job failed, in one line; empty of one that did not."""
    if job.state in ("running", "done"):
        return ""
    if job.state == "lost":
        return job.said[-1]
    return events.failure(job.code or 1, _tail(_of(job.id)))


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
        events = _read(folder, at)
        for event in events:
            at = event.id
            yield event
        if state != "running" and not events:
            with suppress(NoSuchJobError):
                yield Event(at, None, "end", cause(find(folder.name)), state=state)
            return
        await asyncio.sleep(_POLL_S)


def _names() -> list[str]:
    """List the names of all jobs that are kept, the newest first."""
    return sorted((path.parent.name for path in _folder().glob(f"*/{_JOB}")), reverse=True)


def _prune() -> None:
    """Forget those that ended and are old, or many. What runs is never forgotten."""
    begins = time.time() - KEPT_S
    for number, name in enumerate(_names(), 1):
        folder = _folder() / name
        with suppress(FileNotFoundError):
            is_old = (folder / _JOB).stat().st_mtime < begins
            # This one is about to be started.
            if (is_old or number >= KEPT) and _state(folder)[1] != "running":
                shutil.rmtree(folder)


def _spawn(folder: Path, task: Task, module: str, request: str) -> None:
    lock = task.lock
    kept = {
        "schema_version": SCHEMA_VERSION,
        "words": task.words,
        "values": dict(task.values),
        "machine": task.machine,
        "lock": None if lock is None else [lock.place, lock.name],
        "started": datetime.now().astimezone().isoformat(),
    }
    write_whole(folder / _JOB, json.dumps(kept, indent=1))
    with (folder / _OUT).open("wb") as out, (folder / _ERR).open("wb") as err, _held_back():
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            env=_environment(folder),
            # So that no relative path leads to a file of whoever started the server.
            cwd=folder,
            start_new_session=True,
        )
    write_whole(folder / _PROCESS, f"{process.pid} {start_time(process.pid) or _GONE}\n")
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(request.encode())
    # A parent has to wait for its children, or they stay as zombies.
    threading.Thread(target=process.wait, name=folder.name, daemon=True).start()


@contextmanager
def _held_back() -> Iterator[None]:
    """Block the signals that would end a child started here until the child can take them
    (:func:`hotset.operations.child.main`): a process inherits what is blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _environment(folder: Path) -> dict[str, str]:
    """Return the child's environment: no password of ours is its own."""
    # Wide: what is said is not to be broken into lines here.
    settings = {"HOTSET_PROGRESS": "json", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "1000"}
    return of_server(os.environ) | settings | {JOB_VARIABLE: str(folder)}


def _require_free(task: Task) -> None:
    """:raises JobConflictError: a running job has what this one needs."""
    at_work = running()
    for job in at_work:
        if task.lock is not None and job.words == _UNKNOWN:
            raise JobConflictError(
                f"job {job.id} of another version of hotset is running, and what it works on is"
                " not known here: wait for it",
                Remedy("interrupt it", "jobs cancel", {"job": job.id}),
            )
        if conflict(task.lock, _lock_of(job)):
            raise JobConflictError(
                f"job {job.id} ({job.verb}) is running on the same {task.lock}: wait for it",
                Remedy("interrupt it", "jobs cancel", {"job": job.id}),
            )
    if len(at_work) >= AT_ONCE:
        raise JobConflictError(
            f"{len(at_work)} jobs are running, which is as many as may be: wait for one of"
            f" {', '.join(job.id for job in at_work)}",
            Remedy("interrupt one", "jobs cancel"),
        )


def _lock_of(job: Job) -> Lock | None:
    with suppress(FileNotFoundError):
        kept = json.loads((_of(job.id) / _JOB).read_text(encoding="utf-8")).get("lock")
        return None if kept is None else Lock(*kept)
    return None


def _state(folder: Path) -> tuple[int | None, State]:
    """The exit code, and what it means."""
    alive = _alive(folder)
    # After the process: one that has just ended has left its code.
    with suppress(FileNotFoundError, ValueError):
        code = int((folder / CODE).read_text())
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
    """Read the events from there on, whole lines only."""
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
    return NoSuchJobError(
        f"there is no job {id_!r}", Remedy("see all jobs", "jobs list"), field="job"
    )


def _folder() -> Path:
    folder = data_dir() / "jobs"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _alone() -> AbstractContextManager[None]:
    """One start at a time, whoever starts: two must not both find a disk free."""
    return lock_file(_folder() / ".lock")

"""The audit log: who did what, when, from where, and what came of it.

Every call that may change something is kept, from all callers: the command line, the API, the
console; and so are log-ins, changes of tokens, and what a known caller was refused. Callers that
nobody knows are only counted (:mod:`.strangers`). One JSON object a line in
``data_dir()/audit.jsonl``, for this user alone, appended and never rewritten; past 16 MiB the file
is put aside as ``audit.N.jsonl``.

Nobody who calls from elsewhere can push entries out: an entry takes some KiB at most, a caller
makes a limited number a minute, a file stays for 400 days, and where there are too many files such
callers change nothing until someone has moved the oldest away.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hotset.core.errors import HotsetError, PrerequisiteError
from hotset.core.machines.local import start_time
from hotset.core.paths import data_dir, lock_file, read_json_lines
from hotset.core.record import Record
from hotset.core.rights import Right
from hotset.core.words import csv_text

if TYPE_CHECKING:
    from rich.console import Console

    from hotset.core.operation import Operation, Request

Outcome = Literal["started", "done", "failed", "refused"]
SCHEMA_VERSION = 1
_SIZE_MAX = 16 * 1024**2
_LOOKED_AT = 500
"""Entries in which what still runs is sought: so much is not begun beside it."""
_FILES_MAX, _KEPT_S = 64, 400 * 24 * 3600
"""Files that are put aside, which makes 1 GiB; how long each stays at least."""
_TEXT_MAX, _VALUES_MAX = 500, 2000
A_MINUTE = 120
"""Entries of one caller from elsewhere."""
_DSN_NOT_KEPT = "(one that was refused)"
_PUT_ASIDE = re.compile(r"audit\.([1-9][0-9]{0,8})\.jsonl")
_counting = threading.Lock()
_within: dict[tuple[Path, str], tuple[int, int]] = {}
"""By log and caller: the minute, and the entries within it."""


class AuditFullError(PrerequisiteError):
    """There is no room for an entry, and nothing is done that leaves none."""


class TooManyChangesError(HotsetError):
    """A caller changes, or is refused, more than is kept within a minute."""

    http_status = 429


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    :ivar name: ``token NAME``, ``console``, ``USER (command line)``.
    :ivar address: where from; empty for this computer's command line.
    """

    name: str
    right: Right = Right.ADMIN
    address: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was done, or refused.

    :ivar at: when it began, ISO 8601, UTC.
    :ivar values: the request's values, without secrets.
    :ivar outcome: ``started``: it runs, or nothing was heard of it any more.
    :ivar why: of what failed or was refused.
    :ivar ended: when it ended, as ``at``; empty while it runs, and where nobody knows.
    :ivar process: of a command: the number of its process, and when that began in clock ticks since
        boot; empty for jobs, and in what an older hotset wrote.
    """

    id: str
    at: str
    who: str
    address: str
    what: str
    values: Mapping[str, Any]
    outcome: Outcome
    why: str = ""
    ended: str = ""
    process: str = ""


_STYLES = {"done": "green", "failed": "red", "refused": "bold red", "started": "yellow"}


@dataclass(frozen=True)
class AuditLog(Record):
    """Entries, the newest first."""

    csv_rows = "entries"

    entries: tuple[Entry, ...]

    def show(self, console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        if not self.entries:
            console.print("nothing has been logged yet")
            return
        table = Table(box=None, pad_edge=False)
        table.add_column("when", no_wrap=True)
        for head in ("who", "what", "outcome"):
            table.add_column(head, overflow="fold")
        for entry in self.entries:
            who = f"{entry.who}, {entry.address}" if entry.address else entry.who
            outcome = Text(entry.outcome, style=_STYLES[entry.outcome])
            outcome.append(f": {entry.why}" if entry.why else "", style="default")
            table.add_row(Text(entry.at), Text(who), Text(describe(entry)), outcome)
        console.print(table)

    def csv(self) -> str:
        header = ("at", "who", "address", "what", "outcome", "why")
        rows = (
            (entry.at, entry.who, entry.address, describe(entry), entry.outcome, entry.why)
            for entry in self.entries
        )
        return csv_text(header, rows)


def describe(entry: Entry) -> str:
    """Format the request on one line, as a user would write it.

    >>> values = {"targets": ["/a", "/b"], "check": True, "pin": [], "rate": None}
    >>> describe(Entry("", "", "me", "", "warmup run", values, "done"))
    'warmup run targets=/a,/b check=true'
    """
    given = (pair for pair in entry.values.items() if pair[1] is not None and pair[1] != [])
    return " ".join((entry.what, *(f"{name}={_plain(value)}" for name, value in given)))


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_plain, value))
    if isinstance(value, bool | dict):
        return json.dumps(value)
    return str(value)


_FIELDS = frozenset(field.name for field in fields_of(Entry))
ITSELF = Caller("hotset")


def on_command_line() -> Caller:
    """The user who types it here."""
    return Caller(f"{getpass.getuser()} (command line)")


@contextmanager
def doing(caller: Caller, operation: Operation, request: Request) -> Iterator[None]:
    """Keeps a call from its beginning to its end, unless it only reads."""
    if not counts(operation, request):
        yield
        return
    with keeping(caller, operation.name, values_of(request)):
        yield


def counts(operation: Operation, request: Request) -> bool:
    """True if a call is logged: it is one that may change something."""
    only_reads = (
        Right.READ.includes(operation.right_for(dict(request))) or operation.name == "audit"
    )
    return not only_reads and not getattr(request, "dry_run", False)


def begin(
    caller: Caller,
    what: str,
    values: Mapping[str, Any],
    outcome: Outcome = "started",
    why: str = "",
    id_: str = "",
    process: str = "",
) -> str:
    """Keep that something begins, or was refused at once; returns its id.

    :param id_: a job's, which tells its end by it.
    :param process: that does it: its number and when it began; empty: not told.
    :raises AuditFullError: the log has no room for callers from elsewhere.
    :raises TooManyChangesError: this one has had its share of the minute.
    """
    id_ = id_ or uuid.uuid4().hex
    if caller.address:
        _require_room(caller)
    _append(
        id=id_,
        at=_now(),
        who=_short(caller.name),
        address=_short(caller.address),
        what=_short(what),
        values=_shorten(values),
        outcome=outcome,
        why=_short(why),
        **({"process": process} if process else {}),
    )
    return id_


@contextmanager
def keeping(caller: Caller, what: str, values: Mapping[str, Any]) -> Iterator[None]:
    """Keeps what changes something and is no operation, from its beginning to its end."""
    # A later caller goes by the process to see whether it runs: a killed one writes no end.
    id_ = begin(caller, what, values, process=_own_process())
    try:
        yield
    except BaseException as error:
        _end(id_, "failed", str(error) or type(error).__name__)
        raise
    _end(id_, "done")


def _end(id_: str, outcome: Outcome, why: str = "") -> None:
    # What was done is done: a disk that is full by now must not hide how it ended.
    with suppress(OSError):
        end(id_, outcome, why)


def end(id_: str, outcome: Outcome, why: str = "") -> None:
    """Keep what came of it."""
    _append(id=id_, ended=_now(), outcome=outcome, why=_short(why))


def entries(limit: int) -> list[Entry]:
    """The latest, newest first."""
    latest, ends = list[Entry](), dict[str, dict[str, Any]]()
    for path in (_file(), *reversed(_put_aside())):
        begun = dict[str, Entry]()
        for fields in read_json_lines(path):
            if "at" in fields:
                # What a later hotset keeps more of it stays in the log.
                known = {name: value for name, value in fields.items() if name in _FIELDS}
                begun[fields["id"]] = Entry(**known)
            else:
                # Before the beginning, too: a short job may have ended before its caller
                # has written that it began.
                ends[fields["id"]] = {name: fields[name] for name in ("outcome", "why", "ended")}
        latest += reversed(begun.values())
        if len(latest) >= limit:
            break
    return [replace(entry, **ends.get(entry.id, {})) for entry in latest[:limit]]


def running() -> list[Entry]:
    """List the operations of processes still running, except those they run as jobs; the newest
    first."""
    return [
        entry for entry in entries(_LOOKED_AT) if entry.outcome == "started" and _is_alive(entry)
    ]


def _is_alive(entry: Entry) -> bool:
    pid, _, started = entry.process.partition(" ")
    return pid.isdecimal() and start_time(int(pid)) == started


def _own_process() -> str:
    return f"{os.getpid()} {start_time(os.getpid())}"


def values_of(request: Request) -> dict[str, Any]:
    """Return the request's values, without secrets."""
    values = request.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    values.pop("password", None)
    if "dsn" in values:
        values["dsn"] = _without_secret(getattr(request, "engine", "postgres"), values["dsn"])
    return values


def _without_secret(engine: Any, dsn: str) -> str:  # noqa: ANN401 - the request's own
    """A DSN that is refused may have been so for a password in it."""
    from hotset.databases import connect

    try:
        connect.check_dsn(engine, dsn)
    except HotsetError:
        return _DSN_NOT_KEPT
    return dsn


def _file() -> Path:
    return data_dir() / "audit.jsonl"


def _put_aside() -> list[Path]:
    """The files before it, the oldest first."""
    named = ((_PUT_ASIDE.fullmatch(path.name), path) for path in _file().parent.iterdir())
    return [path for _, path in sorted((int(name[1]), path) for name, path in named if name)]


def _require_room(caller: Caller) -> None:
    """:raises HotsetError: see :func:`begin`."""
    if len(_put_aside()) >= _FILES_MAX:
        raise AuditFullError(
            f"the audit log is full, so nothing is changed from elsewhere: on the server, move the"
            f" oldest of its files (audit.N.jsonl) away from {_file().parent}"
        )
    minute = int(time.time() // 60)
    key = _file(), caller.name
    with _counting:
        at, count = _within.get(key, (minute, 0))
        count = count + 1 if at == minute else 1
        _within[key] = minute, count
    if count > A_MINUTE:
        raise TooManyChangesError(
            f"{caller.name} has had {A_MINUTE} entries in the audit log within this minute: wait"
            " for the next"
        )


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"


def _shorten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values, of which each has its share of the room; a longer one becomes text that is cut."""
    most = _VALUES_MAX // max(1, len(values))
    shortened = {}
    for name, value in values.items():
        text = json.dumps(value)
        shortened[_short(name)] = value if len(text) <= most else f"{text[:most]}…"
    return shortened


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _append(**fields: object) -> None:
    append(_file(), f"{json.dumps(fields)}\n", _SIZE_MAX, _turn)


def append(file: Path, text: str, size_max: int, put_aside: Callable[[], object]) -> None:
    """Add lines to a log that others write to as well; what is full is put aside."""
    with lock_file(file.with_suffix(".lock")):
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, text.encode())
            is_full = os.fstat(descriptor).st_size > size_max
        finally:
            os.close(descriptor)
        if is_full:
            put_aside()


def _turn() -> None:
    """Put the file aside, and let go of those that are old."""
    before = _put_aside()
    number = 1 + max((int(path.name.split(".")[1]) for path in before), default=0)
    _file().replace(_file().with_name(f"audit.{number}.jsonl"))
    for path in before:
        if path.stat().st_mtime < time.time() - _KEPT_S:
            path.unlink()

"""The audit log: who did what, when, from where, and what came of it.

Every call that may change something is kept, whoever makes it: the command line, the API, the
console; and so are refused tokens, log-ins and changes of tokens. One JSON object a line in
``data_dir()/audit.jsonl``, for this user alone, appended and never rewritten; past 16 MiB the file
is put aside as ``audit.1.jsonl``, whose predecessor goes.
"""

from __future__ import annotations

import getpass
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hotset.cachelayer.common.paths import data_dir, locked

from .rights import Right

if TYPE_CHECKING:
    from .registry import Operation, Request

Outcome = Literal["started", "done", "failed", "refused"]
SCHEMA_VERSION = 1
_SIZE_MAX = 16 * 1024**2
_TEXT_MAX = 500


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
    :ivar values: what was asked, without secrets.
    :ivar outcome: ``started``: it runs, or nothing was heard of it any more.
    :ivar why: of what failed or was refused.
    """

    id: str
    at: str
    who: str
    address: str
    what: str
    values: Mapping[str, Any]
    outcome: Outcome
    why: str = ""


ITSELF = Caller("hotset")


def on_command_line() -> Caller:
    """Whoever types it here."""
    return Caller(f"{getpass.getuser()} (command line)")


@contextmanager
def doing(caller: Caller, found: Operation, request: Request) -> Iterator[None]:
    """Keeps a call from its beginning to its end, unless it only reads."""
    if not counts(found, request):
        yield
        return
    id_ = begin(caller, found.name, values_of(request))
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


def counts(found: Operation, request: Request) -> bool:
    """Whether a call is kept: it is one that may change something."""
    only_reads = Right.READ.includes(found.right) or found.name == "audit"
    return not only_reads and not getattr(request, "dry_run", False)


def begin(
    caller: Caller,
    what: str,
    values: Mapping[str, Any],
    outcome: Outcome = "started",
    why: str = "",
    id_: str = "",
) -> str:
    """Keep that something begins, or was refused at once; returns its id.

    :param id_: a job's, which tells its end by it.
    """
    id_ = id_ or uuid.uuid4().hex
    _append(
        id=id_,
        at=_now(),
        who=caller.name,
        address=caller.address,
        what=what,
        values=dict(values),
        outcome=outcome,
        why=why[:_TEXT_MAX],
    )
    return id_


def end(id_: str, outcome: Outcome, why: str = "") -> None:
    """Keep what came of it."""
    _append(id=id_, ended=_now(), outcome=outcome, why=why[:_TEXT_MAX])


def entries(limit: int) -> list[Entry]:
    """The latest, newest first."""
    begun, ends = dict[str, Entry](), dict[str, dict[str, Any]]()
    for fields in _lines():
        if "at" in fields:
            begun[fields["id"]] = Entry(**fields)
        else:
            # A short job may have ended before whoever started it has written that it began.
            ends[fields["id"]] = {"outcome": fields["outcome"], "why": fields["why"]}
    latest = list(reversed(begun.values()))[:limit]
    return [replace(entry, **ends.get(entry.id, {})) for entry in latest]


def values_of(request: Request) -> dict[str, Any]:
    """What was asked, without secrets."""
    values = request.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    values.pop("password", None)
    return values


def _file() -> Path:
    return data_dir() / "audit.jsonl"


def _older() -> Path:
    return _file().with_name("audit.1.jsonl")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _append(**fields: object) -> None:
    text = json.dumps(fields) + "\n"
    with locked(_file().with_suffix(".lock")):
        descriptor = os.open(_file(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, text.encode())
            is_full = os.fstat(descriptor).st_size > _SIZE_MAX
        finally:
            os.close(descriptor)
        if is_full:
            _file().replace(_older())


def _lines() -> Iterable[dict[str, Any]]:
    for path in (_older(), _file()):
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # cut short by a full disk or a crash

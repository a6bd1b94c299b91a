"""The control socket of hotset's own cache engine, ``hotset-engine tier``.

An engine goes on while hotset is upgraded around it, so it may be of an earlier version than what
reads its answers here, or of a later one. Within one version of the protocol, what is not known is
passed over and what is missing is named; an engine that speaks another version is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hotset.block import programs
from hotset.block.extents import Run
from hotset.block.io_counters import ENGINE_NAMES, Readings, parse_engine
from hotset.core.errors import Remedy, RequestError
from hotset.core.machines.base import CommandError, CommandTimeoutError, Machine
from hotset.core.units import Blocks, Bytes

from ..base import Counters, Counting, TierFailedError
from ..division import Division, Owner, Owners, Part, SharedOwner

COUNTING = Counting(64)
_TIMEOUT_S = 24 * 3600.0
_LOOK_S = programs.LOOK_S
PATIENCE_S = 60.0
"""After which an engine hangs, as systemd has it."""
_TOO_MUCH = "can be promised"  # as an engine says it: crates/engine/src/tier/shares.rs
PROTOCOL = 1
"""Version of the replies as they are read here (``PROTOCOL``, engine/src/tier/protocol.rs)."""
_COUNTERS: dict[str, Any] = {"counters": {}}
_DEVICES = "devices"


@dataclass(frozen=True, slots=True)
class Refill:
    """Blocks that were cached before the cache had to begin empty, and are fetched again from the
    origin. ``state``: ``fetching``, ``done`` or ``stopped``. Of the ``total`` so many are
    ``seen_to``, and those ``fetched`` among them; the rest of these was cached already, found no
    room, or could not be read."""

    state: str
    seen_to: Blocks
    fetched: Blocks
    total: Blocks


@dataclass(frozen=True, slots=True)
class Front:
    """How a disk is served: ``ublk``, a block device of the kernel's, or ``fuse``, a file with a
    loop device over it. ``detail``: the device; or why it is no such one."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class WriteBackFailure:
    """So many dirty blocks were tried and could not be written back, for so long: the last time
    this ``device`` (``origin`` or ``flash``) failed with this ``error``."""

    device: str
    error: str
    seconds: float
    blocks: Blocks


@dataclass(frozen=True, slots=True)
class Serving:
    """Status of a running engine. ``state``: ``serving``, ``flushing``, ``stopping``,
    ``pass-through`` (the flash failed, nothing is cached) or ``read-only`` (a device failed while
    the flash held what the origin lacks)."""

    counters: Counters
    block: Bytes
    policy: str
    mode: str
    state: str
    devices: Readings | None = None
    """I/O of its devices, where that was asked for."""
    refill: Refill | None = None
    """None where the cache did not begin empty."""
    front: Front | None = None
    """None if there was no choice, or the engine says what is not known here."""
    reason: str = ""
    """Why it is ``pass-through`` or ``read-only``."""
    failure: WriteBackFailure | None = None


@dataclass(frozen=True, slots=True)
class Resident:
    """Cached runs, in origin order, and the dirty runs among them."""

    runs: list[Run]
    dirty: list[Run]


class OtherVersionError(TierFailedError):
    """An engine of another version of hotset: it speaks another version of the protocol, or does
    not know what it is asked or to tell."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the disk's cache engine was started by another version of hotset: {what}. Deactivate"
            " the disk with that version, and activate it with this one, which starts this hotset's"
            " engine",
            Remedy(
                "start this hotset's engine, the disk not in use",
                "tier deactivate",
                {"disk": "DISK"},
            ),
        )


class Answer(dict[str, Any]):
    """An object of an engine's answer."""

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - a field's value
        raise OtherVersionError(f"it does not tell `{name}`")


def counters_argv(program: str, control: PurePosixPath) -> list[str]:
    """The command that prints the counters as one line, the devices' with them."""
    return programs.look_argv(program, control, '{"counters": {"devices": true}}')


def parse_serving(line: str) -> Serving:
    """The engine's counters.

    :raises OtherVersionError: it speaks another version of the protocol, or lacks a field.
    :raises TierFailedError: it answered with an error, or not at all.
    """
    reply = parse_reply(line)
    devices = _readings_by_name(reply[_DEVICES]) if _DEVICES in reply else None
    counters = Counters(
        reply["read_hits"],
        reply["read_misses"],
        reply["write_hits"],
        reply["write_misses"],
        reply["promotions"],
        reply["demotions"],
        dirty=Blocks(reply["dirty"]),
        used=Blocks(reply["used"]),
        total=Blocks(reply["total"]),
        begun=reply["begun"],
    )
    names = (reply["policy"], reply["mode"], reply["state"])
    refill = _refill(reply["refill"]) if "refill" in reply else None
    front = _front(reply.get("front"))
    failure = _failure(reply["write_back_failure"]) if "write_back_failure" in reply else None
    reason = reply.get("reason", "")
    block = Bytes(reply["block_bytes"])
    return Serving(counters, block, *names, devices, refill, front, reason, failure)


def _failure(reply: Answer) -> WriteBackFailure:
    words = (reply["device"], reply["error"], reply["seconds"])
    return WriteBackFailure(*words, Blocks(reply["blocks"]))


def _front(reply: object) -> Front | None:
    match reply:
        case {"ublk": {"device": str(device)}}:
            return Front("ublk", device)
        case {"fuse": {"why": str(why)}}:
            return Front("fuse", why)
        case _:
            return None


def _refill(reply: Answer) -> Refill:
    numbers = (Blocks(reply[key]) for key in ("seen_to", "fetched", "total"))
    return Refill(reply["state"], *numbers)


def parse_devices(line: str) -> Readings:
    """Parse the I/O of the engine's devices; raises as :func:`parse_serving` does."""
    return parse_serving(line).devices or {}


def _readings_by_name(devices: list[dict[str, Any]]) -> Readings:
    readings = parse_engine(devices)
    return {
        ENGINE_NAMES[name]: reading for name, reading in readings.items() if name in ENGINE_NAMES
    }


def parse_reply(line: str) -> Answer:
    """One line of an answer; raises as :func:`parse_serving` does."""
    if line.strip() == "Fail":
        raise TierFailedError("the tier's engine does not answer: is it gone?")
    try:
        reply = json.loads(line, object_hook=Answer)
    except json.JSONDecodeError:
        reply = None
    if not isinstance(reply, Answer):
        raise TierFailedError(f"not an answer of the tier's engine: {line[:200]!r}")
    spoken = reply.get("protocol")
    if spoken != PROTOCOL:
        speaks = "none, as before the first release" if spoken is None else f"version {spoken!r}"
        raise OtherVersionError(
            f"of the control protocol it speaks {speaks}, this hotset {PROTOCOL}"
        )
    if "error" in reply:
        raise _complaint(reply)
    return reply


def _complaint(reply: Answer) -> TierFailedError:
    message = str(reply["error"])
    # Of serde, which reads the requests.
    unknown = re.search(r"unknown (?:variant|field) (`[^`]*`)", message)
    if unknown is None:
        return TierFailedError(f"the tier's engine says: {message}")
    return OtherVersionError(f"it does not know {unknown[1]}")


def ask(
    machine: Machine,
    control: PurePosixPath,
    what: dict[str, Any],
    on_reply: Callable[[Answer], None] = lambda _: None,
    limit_s: float = _TIMEOUT_S,
) -> list[Answer]:
    """Ask an engine, or have it do something; returns all it answers. First whether it speaks this
    version of the protocol: one that does not, would do what it takes the request for.

    :param limit_s: one that is at work for longer than this does not answer.
    :raises OtherVersionError: it is of another version, and nothing was done.
    :raises TierFailedError: it refuses, or does not answer; the message says why.
    """
    _exchange(machine, control, _COUNTERS, limit_s=min(limit_s, PATIENCE_S))
    return _exchange(machine, control, what, on_reply, limit_s)


def _exchange(
    machine: Machine,
    control: PurePosixPath,
    what: dict[str, Any],
    on_reply: Callable[[Answer], None] = lambda _: None,
    limit_s: float = _TIMEOUT_S,
) -> list[Answer]:
    replies: list[Answer] = []

    def on_line(line: str) -> None:
        replies.append(parse_reply(line))
        on_reply(replies[-1])

    argv = [programs.engine(machine), "ask", str(control), json.dumps(what)]
    try:
        machine.run(argv, timeout_s=limit_s, on_line=on_line)
    except CommandTimeoutError:
        raise TierFailedError(f"its cache engine has not answered within {limit_s:.0f} s") from None
    except CommandError as error:
        message = programs.last_message(error.result.stderr)
        raise TierFailedError(message or str(error)) from None
    return replies


def serving(machine: Machine, control: PurePosixPath, limit_s: float = _LOOK_S) -> Serving:
    """The counters now; raises as :func:`ask` does."""
    replies = _exchange(machine, control, _COUNTERS, limit_s=limit_s)
    return parse_serving(json.dumps(replies[-1]))


def look(machine: Machine, control: PurePosixPath, what: dict[str, Any]) -> Answer:
    """How something is now, which of a large cache may take its time: so first whether the engine
    answers at all. Raises as :func:`ask` does."""
    serving(machine, control)
    return _exchange(machine, control, what)[-1]


def resident(machine: Machine, control: PurePosixPath) -> Resident:
    """Read what is cached now; raises as :func:`ask` does."""
    reply = look(machine, control, {"resident": {}})
    return Resident(_runs(reply["runs"]), _runs(reply["dirty"]))


def by_level(machine: Machine, control: PurePosixPath) -> dict[int, list[Run]]:
    """Group the cached runs by their worth to the policy (0 to 63); raises as :func:`ask` does."""
    levels: dict[int, list[Run]] = {}
    for first, _, level in look(machine, control, {"heat": {"extent_blocks": 1}})["extents"]:
        runs = levels.setdefault(level, [])
        if runs and runs[-1].start + runs[-1].count == first:
            runs[-1] = Run(runs[-1].start, Blocks(runs[-1].count + 1))
        else:
            runs.append(Run(Blocks(first), Blocks(1)))
    return levels


def division(machine: Machine, control: PurePosixPath) -> Division:
    """How the cache is divided; raises as :func:`ask` does."""
    return _division(ask(machine, control, {"shares": {}}, limit_s=_LOOK_S)[-1])


def owners(machine: Machine, control: PurePosixPath) -> Owners:
    """Return the owners of the last :func:`divide`; raises as :func:`ask` does."""
    reply = ask(machine, control, {"shared": {}}, limit_s=_LOOK_S)[-1]

    def owners_by_name(answers: list[Answer]) -> tuple[Owner, ...]:
        return tuple(Owner(answer["name"], tuple(_runs(answer["runs"]))) for answer in answers)

    shares = tuple(
        SharedOwner(
            share["name"],
            tuple(_runs(share["runs"])),
            Blocks(share["guaranteed"]),
            Blocks(share["most"]),
        )
        for share in reply["shares"]
    )
    return Owners(owners_by_name(reply["pinned"]), owners_by_name(reply["excluded"]), shares)


def divide(machine: Machine, control: PurePosixPath, wanted: Owners) -> Division:
    """Divide the cache from now on. What has no place any more leaves by and by.

    :raises RequestError: more is pinned or guaranteed than fits; all is as it was.
    :raises TierFailedError: it cannot be kept, and all is as it was.
    """

    def pairs(runs: tuple[Run, ...]) -> list[tuple[int, int]]:
        return [(int(run.start), int(run.count)) for run in runs]

    fields = {
        "pinned": [{"name": owner.name, "runs": pairs(owner.runs)} for owner in wanted.pinned],
        "excluded": [{"name": owner.name, "runs": pairs(owner.runs)} for owner in wanted.excluded],
        "shares": [
            {
                "name": share.name,
                "runs": pairs(share.runs),
                "guaranteed": int(share.guaranteed),
                "most": int(share.most),
            }
            for share in wanted.shares
        ],
    }
    try:
        return _division(ask(machine, control, {"share": fields})[-1])
    except TierFailedError as error:
        if _TOO_MUCH not in str(error):
            raise
        larger = Remedy("make it larger", "tier resize", {"cache": "SIZE"})
        raise RequestError(str(error), larger) from None


def _division(reply: Answer) -> Division:
    def part(of: Answer) -> Part:
        numbers = (Blocks(of[key]) for key in ("blocks", "resident", "guaranteed", "most"))
        return Part(of["name"], *numbers)

    return Division(
        Bytes(reply["block_bytes"]),
        Blocks(reply["total"]),
        Blocks(reply["available"]),
        part(reply["pinned"]),
        part(reply["excluded"]),
        tuple(map(part, reply["shares"])),
        Blocks(reply["to_leave"]),
    )


def flush(machine: Machine, control: PurePosixPath, progress: Callable[[Blocks], None]) -> int:
    """Write back what is dirty; returns how many blocks were. Raises as :func:`ask` does."""

    def on_reply(reply: Answer) -> None:
        if "left" in reply:
            progress(Blocks(reply["left"]))

    flushed: int = ask(machine, control, {"flush": {}}, on_reply)[-1]["flushed"]
    return flushed


def _runs(pairs: list[list[int]]) -> list[Run]:
    return [Run(Blocks(start), Blocks(count)) for start, count in pairs]

"""The control socket of hotset's own cache engine, ``flashdev tier``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..block import flashdev
from ..block.extents import Run
from ..block.io_counters import ENGINE_NAMES, Readings, parse_engine
from ..common.errors import Remedy
from ..common.units import Blocks, Bytes
from ..hosts.base import CommandError, Machine
from .base import Counters, TierFailedError

COUNTER_BITS = 64
_TIMEOUT_S = 24 * 3600.0
EVENTS = ("read_hits", "read_misses", "write_hits", "write_misses", "promotions", "demotions")
LEVELS = ("dirty", "used", "total")
_OTHERS = ("write_backs", "block_bytes", "policy", "mode", "state")
_DEVICES = "devices"


@dataclass(frozen=True, slots=True)
class Serving:
    """What a running engine says of itself. ``state``: ``serving``, ``flushing``, ``stopping``,
    ``pass-through`` (the flash failed, nothing is cached) or ``read-only`` (a device failed while
    the flash held what the origin lacks)."""

    counters: Counters
    block: Bytes
    policy: str
    mode: str
    state: str
    devices: Readings | None = None
    """What went through its devices, where that was asked for."""


@dataclass(frozen=True, slots=True)
class Resident:
    """What is cached, in origin order, and what of it is dirty."""

    runs: list[Run]
    dirty: list[Run]


class DivisionUnknownError(TierFailedError):
    """An engine that cannot divide its cache."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Blocks of the origin that are pinned or excluded together; ``name`` is what the user called
    them."""

    name: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class SharedOwner(Owner):
    """Blocks that have a share: others leave it ``guaranteed`` blocks of the cache, and it gets no
    more than ``most``."""

    guaranteed: Blocks
    most: Blocks


@dataclass(frozen=True, slots=True)
class Owners:
    """Whose the cache is to be. Where two have a block in common, what is excluded comes first,
    then what is pinned, then the shares in their order."""

    pinned: tuple[Owner, ...] = ()
    excluded: tuple[Owner, ...] = ()
    shares: tuple[SharedOwner, ...] = ()

    @property
    def every(self) -> tuple[Owner, ...]:
        return (*self.pinned, *self.excluded, *self.shares)

    def runs_of(self, name: str) -> tuple[Run, ...] | None:
        """Those of an owner; None if there is none of that name."""
        return next((one.runs for one in self.every if one.name == name), None)


@dataclass(frozen=True, slots=True)
class Part:
    """What an owner has: blocks of its own, those of them that are cached, and its limits."""

    name: str
    blocks: Blocks
    resident: Blocks
    guaranteed: Blocks
    most: Blocks


@dataclass(frozen=True, slots=True)
class Division:
    """How a cache of ``total`` blocks is divided, of which ``available`` can be promised; so many
    have still ``to_leave`` before it is so."""

    block: Bytes
    total: Blocks
    available: Blocks
    pinned: Part
    excluded: Part
    shares: tuple[Part, ...]
    to_leave: Blocks


def counters_argv(program: str, control: PurePosixPath) -> list[str]:
    """The command that prints the counters as one line, the devices' with them."""
    return [program, "ask", str(control), '{"counters": {"devices": true}}']


def parse_serving(line: str) -> Serving:
    """The engine's counters.

    :raises TierFailedError: it answered with an error, or not at all.
    :raises ValueError: a field is missing or unknown.
    """
    reply = parse_reply(line)
    devices = _named(reply.pop(_DEVICES)) if _DEVICES in reply else None
    wrong = {*EVENTS, *LEVELS, *_OTHERS}.symmetric_difference(reply)
    if wrong:
        raise ValueError(f"the tier's counters: {', '.join(sorted(wrong))} missing or unknown")
    levels = {name: Blocks(reply[name]) for name in LEVELS}
    events = {name: reply[name] for name in EVENTS}
    names = (reply["policy"], reply["mode"], reply["state"])
    return Serving(Counters(**events, **levels), Bytes(reply["block_bytes"]), *names, devices)


def parse_devices(line: str) -> Readings:
    """What went through the engine's devices; raises as :func:`parse_serving` does."""
    return parse_serving(line).devices or {}


def _named(devices: list[dict[str, Any]]) -> Readings:
    return {ENGINE_NAMES[name]: one for name, one in parse_engine(devices).items()}


def parse_reply(line: str) -> dict[str, Any]:
    """One line of an answer; raises as :func:`parse_serving` does."""
    if line.strip() == "Fail":
        raise TierFailedError("the tier's engine does not answer: is it gone?")
    try:
        reply: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        raise ValueError(f"not an answer of the tier's engine: {line!r}") from None
    if "error" in reply:
        raise TierFailedError(f"the tier's engine says: {reply['error']}")
    return reply


def ask(
    machine: Machine,
    control: PurePosixPath,
    what: dict[str, Any],
    on_reply: Callable[[dict[str, Any]], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Ask an engine; returns all it answers.

    :raises TierFailedError: it refuses, or does not answer; the message says why.
    """
    replies: list[dict[str, Any]] = []

    def on_line(line: str) -> None:
        replies.append(parse_reply(line))
        on_reply(replies[-1])

    argv = [flashdev.on(machine), "ask", str(control), json.dumps(what)]
    try:
        machine.run(argv, timeout_s=_TIMEOUT_S, on_line=on_line)
    except CommandError as error:
        said = error.result.stderr.strip().removeprefix("flashdev: ")
        raise TierFailedError(said or str(error)) from None
    return replies


def serving(machine: Machine, control: PurePosixPath) -> Serving:
    """The counters now; raises as :func:`ask` does."""
    return parse_serving(json.dumps(ask(machine, control, {"counters": {}})[-1]))


def resident(machine: Machine, control: PurePosixPath) -> Resident:
    """What is cached now; raises as :func:`ask` does."""
    reply = ask(machine, control, {"resident": {}})[-1]
    return Resident(_runs(reply["runs"]), _runs(reply["dirty"]))


def by_level(machine: Machine, control: PurePosixPath) -> dict[int, list[Run]]:
    """What is cached, by its worth to the policy (0 to 63); raises as :func:`ask` does."""
    levels: dict[int, list[Run]] = {}
    for first, _, level in ask(machine, control, {"heat": {"extent_blocks": 1}})[-1]["extents"]:
        runs = levels.setdefault(level, [])
        if runs and runs[-1].start + runs[-1].count == first:
            runs[-1] = Run(runs[-1].start, Blocks(runs[-1].count + 1))
        else:
            runs.append(Run(Blocks(first), Blocks(1)))
    return levels


def division(machine: Machine, control: PurePosixPath) -> Division:
    """How the cache is divided.

    :raises DivisionUnknownError: it is an engine of an earlier version.
    :raises TierFailedError: as :func:`ask` does.
    """
    return _division(_ask_of_division(machine, control, {"shares": {}}))


def _ask_of_division(
    machine: Machine, control: PurePosixPath, what: dict[str, Any]
) -> dict[str, Any]:
    try:
        return ask(machine, control, what)[-1]
    except TierFailedError as error:
        if "unknown variant" not in str(error):
            raise
        raise DivisionUnknownError(
            "the disk's cache engine was started by an earlier version of hotset, which knows no"
            " pins and shares: deactivate the disk and activate it again",
            Remedy("start the new one, the disk not in use", "tier deactivate"),
        ) from None


def owners(machine: Machine, control: PurePosixPath) -> Owners:
    """What :func:`divide` said last; raises as :func:`division` does."""
    reply = _ask_of_division(machine, control, {"shared": {}})

    def named(found: list[dict[str, Any]]) -> tuple[Owner, ...]:
        return tuple(Owner(one["name"], tuple(_runs(one["runs"]))) for one in found)

    shares = tuple(
        SharedOwner(
            one["name"], tuple(_runs(one["runs"])), Blocks(one["guaranteed"]), Blocks(one["most"])
        )
        for one in reply["shares"]
    )
    return Owners(named(reply["pinned"]), named(reply["excluded"]), shares)


def divide(machine: Machine, control: PurePosixPath, wanted: Owners) -> Division:
    """Divide the cache from now on. What has no place any more leaves by and by.

    :raises DivisionUnknownError: it is an engine of an earlier version.
    :raises TierFailedError: it cannot be so, and all is as it was.
    """

    def pairs(runs: tuple[Run, ...]) -> list[tuple[int, int]]:
        return [(int(run.start), int(run.count)) for run in runs]

    fields = {
        "pinned": [{"name": one.name, "runs": pairs(one.runs)} for one in wanted.pinned],
        "excluded": [{"name": one.name, "runs": pairs(one.runs)} for one in wanted.excluded],
        "shares": [
            {
                "name": one.name,
                "runs": pairs(one.runs),
                "guaranteed": int(one.guaranteed),
                "most": int(one.most),
            }
            for one in wanted.shares
        ],
    }
    return _division(_ask_of_division(machine, control, {"share": fields}))


def _division(reply: dict[str, Any]) -> Division:
    def part(fields: dict[str, Any]) -> Part:
        name = fields.pop("name")
        return Part(name, **{key: Blocks(value) for key, value in fields.items()})

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

    def on_reply(reply: dict[str, Any]) -> None:
        if "left" in reply:
            progress(Blocks(reply["left"]))

    flushed: int = ask(machine, control, {"flush": {}}, on_reply)[-1]["flushed"]
    return flushed


def _runs(pairs: list[list[int]]) -> list[Run]:
    return [Run(Blocks(start), Blocks(count)) for start, count in pairs]

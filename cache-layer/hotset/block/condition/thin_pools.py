"""How full the thin pools are that a device lies on: Documentation/admin-guide/device-mapper/
thin-provisioning.rst of the kernel ("thin-pool": "Status")."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine, PrerequisiteMissingError

from .drives import NotKnownError, below

MAPPER = PurePosixPath("/dev/mapper")
"""Where the device mapper's devices are: a pool is one, and so is what lies on it."""
_LINE = re.compile(
    r"^(?P<name>\S+): \d+ \d+ thin-pool (?:(?P<failed>Fail|Error)|\d+ (?P<meta>\d+/\d+)"
    r" (?P<data>\d+/\d+) (?P<rest>.*))$"
)


@dataclass(frozen=True, slots=True)
class ThinPool:
    """A thin pool. Shares of its room that are used, 0 to 1; None: it failed and tells none.

    :ivar trouble: other trouble that it reports; empty: none.
    """

    name: str
    data: float | None
    metadata: float | None
    trouble: str = ""


def measure(machine: Machine, places: Iterable[PurePosixPath]) -> list[ThinPool]:
    """The thin pools that devices lie on, each once; none for most.

    :raises NotKnownError: what one lies on is not known, or a pool does not tell.
    """
    names = {
        device.name
        for place in dict.fromkeys(places)
        for device in below(machine, place)
        if device.path.parent == MAPPER
    }
    if not names:
        return []
    try:
        done = machine.run(["dmsetup", "status", "--target", "thin-pool"], check=False)
    except PrerequisiteMissingError:
        # Without the device mapper's program nobody made a pool.
        return []
    if done.rc:
        message = (done.stderr.strip() or "no answer").splitlines()[0]
        raise NotKnownError(f"the thin pools are not known: {message}")
    lines = [line for line in done.stdout.splitlines() if line.partition(":")[0] in names]
    return [parse(line) for line in lines]


def parse(line: str) -> ThinPool:
    """
    >>> parse("vg-pool: 0 204800 thin-pool 1 12/48 30/40 - rw discard_passdown queue - 1024")
    ThinPool(name='vg-pool', data=0.75, metadata=0.25, trouble='')
    >>> parse("vg-pool: 0 204800 thin-pool Fail").trouble
    'it failed'

    :raises NotKnownError: not the status of a thin pool.
    """
    match = _LINE.match(line.strip())
    if match is None:
        raise NotKnownError(f"not the status of a thin pool: {line.strip()!r}")
    if match["failed"]:
        return ThinPool(match["name"], None, None, "it failed")
    words = match["rest"].split()
    reasons = {"ro": "it is read-only", "out_of_data_space": "it has no room left"}
    troubles = [reasons[word] for word in words if word in reasons]
    troubles += ["its metadata need a check"] if "needs_check" in words else []
    data, metadata = (_share(match[name]) for name in ("data", "meta"))
    return ThinPool(match["name"], data, metadata, ", ".join(troubles))


def _share(text: str) -> float:
    used, total = (int(word) for word in text.split("/"))
    return used / total if total else 1.0

"""Whatever may change a disk's cache waits for whoever works on it, from wherever it is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from hotset.core.machines import names as connect
from hotset.core.machines.dry_run import only_reads
from hotset.core.machines.locks import MachineBusyError
from hotset.core.operation import Context
from hotset.core.rights import Right
from hotset.operations import table
from tests.support.flash_devices import Keeping
from tests.support.new_disk import FLASH, ORIGIN, with_flash

HOLDER = "`hotset tier flush oltp` (process 1 on db1)"
DISK = {"disk": "oltp"}
TARGETS = {**DISK, "targets": ["/srv/db"]}
WORKING: dict[str, dict[str, Any]] = {
    "tier activate": {},
    "tier create": {
        "disk": "second",
        "flash": str(FLASH),
        "origin": str(ORIGIN),
        "cache": "64MiB",
        "database": "oltp",
    },
    "tier deactivate": DISK,
    "tier destroy": {"flash_name": "main"},
    "tier detach": DISK,
    "tier flush": DISK,
    "tier import": {"flash": str(FLASH)},
    "programs rm": {},
    "tier repair": DISK,
    "tier resize": {**DISK, "cache": "128MiB"},
    "tier set": {**DISK, "mode": "writethrough"},
    "warmup exclude": TARGETS,
    "warmup pin": TARGETS,
    "warmup plan": TARGETS,
    "warmup refresh": DISK,
    "warmup restore": {**DISK, "file": "/srv/snapshot"},
    "warmup run": TARGETS,
    "warmup share": {**DISK, "target": "/srv/db"},
    "warmup snapshot": {**DISK, "output": "/srv/snapshot"},
    "warmup unpin": TARGETS,
}
"""Operations on a disk's cache, with what each needs to begin."""
OTHERS = {
    "disk calibrate": "has a disk of its own",
    "heat start": "counts requests; no cache is changed",
    "heat stop": "counts requests; no cache is changed",
    "lab up": "has a machine of its own, or a lock of the lab's",
    "warmup schedule add": "writes a unit, whose runs take the lock",
    "warmup schedule remove": "removes a unit",
    "whatif record": "reads a trace of the kernel's",
}


def test_each_operation_on_a_machine_is_known_here() -> None:
    named = {
        found.name
        for found in table.every()
        if "machine" in found.fields and not Right.READ.includes(found.right)
    }
    assert named == WORKING.keys() | OTHERS.keys()


def refused(name: str, monkeypatch: pytest.MonkeyPatch, **more: bool) -> tuple[Keeping, list[str]]:
    """Begin an operation on a machine that another has; returns what it asked of the lock."""
    there, asked = with_flash(), list[str]()
    there.calls.clear()

    @contextmanager
    def occupied(argv: Sequence[str]) -> Iterator[Iterator[str]]:
        asked.extend(argv[-3:])
        yield iter([HOLDER, "busy"] if "hotset-lock" in argv else [])

    monkeypatch.setattr(there, "stream", occupied)
    monkeypatch.setattr(connect, "open_machine", lambda *_: nullcontext(there))
    found = table.find(name)
    with pytest.raises(MachineBusyError, match="tier flush oltp"):
        found.function(found.request(**WORKING[name], **more), Context())
    return there, asked


@pytest.mark.parametrize("name", WORKING)
def test_it_waits_for_whoever_has_the_lock(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there, _ = refused(name, monkeypatch)
    assert [line for line in there.commands if not only_reads(line.split())] == [
        line for line in there.commands if "hotset-lock" in line
    ]


def test_who_changes_fstab_keeps_others_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two disks whose entries were changed at once, one entry was as before: the next boot
    mounted an origin, whose data are old."""
    _, alone = refused("tier activate", monkeypatch, unit=True)
    assert alone == ["exclusive", "", ""]
    _, shared = refused("tier activate", monkeypatch)
    assert shared == ["shared", "oltp", "exclusive"]

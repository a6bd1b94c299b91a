"""The warm-up schedules of a machine: their systemd units, how each last ran, and their end.

:mod:`hotset.warmup.schedule` makes them; they end with their disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import PurePosixPath
from typing import Literal

from hotset.core.errors import RequestError
from hotset.core.machines.base import Machine
from hotset.core.record import Record, columns_of
from hotset.core.words import text_table

from . import systemd_unit
from .systemd_unit import FOLDER

SNAPSHOTS = PurePosixPath("/var/lib/hotset")
PREFIX = "hotset-warmup-"
WANTED_BY = ("multi-user.target", "timers.target")
"""Targets by which systemd starts a service or a timer."""
_STAMPS = PurePosixPath("/var/lib/systemd/timers")
"""Where systemd keeps when each timer fired last; a later timer of that name would fire at once
as it seems to have missed its time."""
Last = Literal["", "running", "done", "failed"]
_NEVER: tuple[Last, str] = ("", "")


class ScheduleError(RequestError):
    """The text is no schedule; the message says what would be."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit's file: its name and text."""

    name: str
    text: str

    @property
    def path(self) -> PurePosixPath:
        return FOLDER / self.name


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it is listed. ``last``: how its last run came out, ``ended`` when, both empty
    where it has not run since the machine started."""

    name: str
    when: str
    last: Last
    ended: str
    command: str


@dataclass(frozen=True, slots=True)
class Run:
    """A schedule's run since the machine's start, the one at work or the last.

    :ivar seconds: for how long it has run, or took; 0: it has not run.
    :ivar waits: whether systemd runs it again: its timer is active, or it has none.
    """

    seconds: float
    waits: bool


@dataclass(frozen=True)
class Schedules(Record):
    """Schedules of a machine."""

    csv_rows = "schedules"

    schedules: tuple[Schedule, ...]

    def to_text(self) -> str:
        rows = [[cell or "-" for cell in astuple(row)] for row in self.schedules]
        return text_table(columns_of(Schedule), rows)


def snapshot_of(disk: str) -> PurePosixPath:
    return SNAPSHOTS / f"{disk}.snapshot"


def list_units(machine: Machine) -> list[Unit]:
    """The units of hotset's schedules."""
    if machine.run(["test", "-d", str(FOLDER)], check=False).rc:
        return []
    names = machine.run(["ls", str(FOLDER)]).stdout.split()
    units = [name for name in sorted(names) if name.startswith(PREFIX)]
    return [Unit(name, machine.run(["cat", str(FOLDER / name)]).stdout) for name in units]


def rows(machine: Machine, units: Sequence[Unit]) -> list[Schedule]:
    """Describe each schedule."""
    timers = {unit.name: unit for unit in units if unit.name.endswith(".timer")}
    services = [unit for unit in units if unit.name not in timers]
    outcomes = _outcomes(machine, [unit.name for unit in services])
    listed = []
    for unit in services:
        stem = unit.name.removesuffix(".service")
        timer = timers.get(f"{stem}.timer")
        key = "ExecStop" if value_of(unit, "ExecStop") else "ExecStart"
        occasion = "shutdown" if key == "ExecStop" else "boot"
        when = value_of(timer, "OnCalendar") if timer else occasion
        last, ended = outcomes.get(unit.name, _NEVER)
        if key == "ExecStop":
            last, ended = _last_of_snapshot(machine, _disk_of(unit))
        listed.append(Schedule(stem.removeprefix(PREFIX), when, last, ended, value_of(unit, key)))
    return listed


def _outcomes(machine: Machine, services: Sequence[str]) -> dict[str, tuple[Last, str]]:
    """How the last run of each came out since the machine's start, and when it ended."""
    if not services or not systemd_unit.runs(machine):
        return {}
    keys = "Id,ActiveState,Result,ExecMainExitTimestampMonotonic,ExecMainExitTimestamp"
    shown = machine.run(["systemctl", "show", f"--property={keys}", *services], check=False).stdout
    outcomes = dict[str, tuple[Last, str]]()
    for block in shown.split("\n\n"):
        properties = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        ended = properties.get("ExecMainExitTimestamp", "")
        if properties.get("ActiveState") in ("activating", "reloading"):
            outcomes[properties["Id"]] = ("running", "")
        elif properties.get("ExecMainExitTimestampMonotonic", "0") != "0":
            outcomes[properties["Id"]] = (
                "done" if properties.get("Result") == "success" else "failed",
                ended,
            )
        elif properties.get("ActiveState") == "failed":
            outcomes[properties["Id"]] = ("failed", "")
    return outcomes


def runs_of_disk(machine: Machine, disk: str) -> list[tuple[Schedule, Run | None]]:
    """A disk's schedules, each with its last run; None: systemd tells none."""
    mine = of_disk(list_units(machine), disk)
    runs = last_runs(machine, mine) if mine else {}
    return [(schedule, runs.get(schedule.name)) for schedule in rows(machine, mine)]


def last_runs(machine: Machine, listed: Sequence[Unit]) -> dict[str, Run]:
    """How long the last run of each schedule took, and whether there will be another, by the
    schedule's name. Nothing where systemd does not answer."""
    if not systemd_unit.runs(machine):
        return {}
    keys = "Id,ActiveState,ExecMainStartTimestampMonotonic,ExecMainExitTimestampMonotonic"
    names = [unit.name for unit in listed]
    shown = machine.run(["systemctl", "show", f"--property={keys}", *names], check=False).stdout
    blocks = [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        for block in shown.split("\n\n")
    ]
    units = {block["Id"]: block for block in blocks if "Id" in block}
    words = machine.run(["cat", "/proc/uptime"], check=False).stdout.split()
    now = float(words[0]) if words else 0.0
    runs = {}
    for name in (unit for unit in names if unit.endswith(".service") and unit in units):
        stem, properties = name.removesuffix(".service"), units[name]
        begun, ended = (
            int(properties.get(f"ExecMain{which}TimestampMonotonic", 0)) / 1e6
            for which in ("Start", "Exit")
        )
        seconds = (ended if ended >= begun else now) - begun if begun else 0.0
        waits = f"{stem}.timer" not in names or _is_on(units.get(f"{stem}.timer", {}))
        runs[stem.removeprefix(PREFIX)] = Run(max(0.0, seconds), waits)
    return runs


def _is_on(properties: Mapping[str, str]) -> bool:
    return properties.get("ActiveState") == "active"


def _last_of_snapshot(machine: Machine, disk: str) -> tuple[Last, str]:
    """Do as :func:`_outcomes`; systemd forgets at boot what it did at shutdown."""
    saved = machine.run(["stat", "--format=%y", str(snapshot_of(disk))], check=False)
    # To the second, as systemd tells its times.
    at = re.sub(r"\.\d+", "", saved.stdout.strip())
    return ("done", at) if saved.rc == 0 else _NEVER


def value_of(unit: Unit, key: str) -> str:
    match = re.search(rf"^{key}=(.*)$", unit.text, re.MULTILINE)
    return match[1] if match else ""


def remove(machine: Machine, name: str) -> list[str]:
    """Remove a schedule's units; returns their names.

    :raises ScheduleError: there is none of that name; names those there are.
    """
    existing = {unit.name for unit in list_units(machine)}
    names = [f"{PREFIX}{name}.{kind}" for kind in ("timer", "service")]
    present = [name for name in names if name in existing]
    if not present:
        known = sorted({name.removeprefix(PREFIX).rpartition(".")[0] for name in existing})
        raise ScheduleError(
            f"there is no schedule {name!r}; there are: {', '.join(known) or 'none'}", field="name"
        )
    end(machine, present)
    return present


def end_for(machine: Machine, disk: str) -> list[str]:
    """End the schedules of a disk that is no more, which would fail from now on, and remove its
    snapshot, which is of no use to the next disk of its name; returns the units' names."""
    names = [unit.name for unit in of_disk(list_units(machine), disk)]
    if names:
        # Timers first: none begins while its service ends.
        end(machine, sorted(names, key=lambda name: not name.endswith(".timer")))
    machine.run(["rm", "-f", str(snapshot_of(disk))])
    return names


def of_disk(units: Sequence[Unit], disk: str) -> list[Unit]:
    """List the units of a disk's schedules."""
    mine = {unit.name.rpartition(".")[0] for unit in units if _disk_of(unit) == disk}
    return [unit for unit in units if unit.name.rpartition(".")[0] in mine]


def _disk_of(unit: Unit) -> str:
    """By the command that :func:`_words` made; empty for a timer."""
    command = value_of(unit, "ExecStop") or value_of(unit, "ExecStart")
    named = re.search(r" --disk (\S+)| warmup snapshot (\S+) --output ", command)
    return (named[1] or named[2]) if named else ""


def end(machine: Machine, units: Sequence[str]) -> None:
    _delete(machine, units)
    if not systemd_unit.runs(machine):
        return
    machine.run(["systemctl", "daemon-reload"], check=False)
    # Only now: systemd does not know any more what a stop would run, a snapshot of a disk that may
    # be gone.
    machine.run(["systemctl", "stop", *units], check=False)
    machine.run(["systemctl", "reset-failed", *units], check=False)


def _delete(machine: Machine, names: Sequence[str]) -> None:
    """With what has systemd start them, as `systemctl disable` does."""
    stamps = [_STAMPS / f"stamp-{name}" for name in names if name.endswith(".timer")]
    wanted = [FOLDER / f"{target}.wants" / name for target in WANTED_BY for name in names]
    machine.run(["rm", "-f", *map(str, (*(FOLDER / name for name in names), *wanted, *stamps))])

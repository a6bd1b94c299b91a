"""Warm-ups at set times, at the machine's start and at its shutdown: systemd units.

Source: systemd.timer(5), systemd.time(7), systemd.unit(5), systemd.service(5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hotset.core.errors import Remedy, RequestError
from hotset.core.machines import scratch
from hotset.core.machines.base import Machine, PrerequisiteMissingError, put_text
from hotset.core.record import Record
from hotset.core.units import Bytes
from hotset.databases import connect
from hotset.databases.connect import EngineName
from hotset.disk.boot import systemd_unit
from hotset.disk.boot.systemd_unit import FOLDER
from hotset.tier.filling import Way

from .targets import parse

SNAPSHOTS = PurePosixPath("/var/lib/hotset")
PREFIX = "hotset-warmup-"
_TARGETS = ("multi-user.target", "timers.target")
"""What has systemd start a service or a timer."""
_STAMPS = PurePosixPath("/var/lib/systemd/timers")
"""Where systemd keeps when each timer fired last; a later timer of that name would fire at once
as it seems to have missed its time."""
Last = Literal["", "running", "done", "failed"]
_NEVER: tuple[Last, str] = ("", "")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_FIELD = r"(?:\*|\d{1,4}(?:\.\.\d{1,4})?(?:/\d{1,4})?)(?:[,/]\d{1,4}(?:\.\.\d{1,4})?)*"
# The parts of a time in systemd's order; a zone only as UTC or Area/City, or any word would be one.
_PARTS = (
    rf"{_DAY}(?:(?:\.\.|,){_DAY})*",
    rf"{_FIELD}-{_FIELD}(?:-{_FIELD})?",
    rf"{_FIELD}:{_FIELD}(?::{_FIELD})?",
    r"UTC|[A-Za-z]+/[A-Za-z_/]+",
)
_CALENDAR = re.compile(
    rf"^(?:{_PARTS[0]} )?(?:{_PARTS[1]} )?{_PARTS[2]}(?: (?:{_PARTS[3]}))?$", re.IGNORECASE
)
_WORDS = frozenset(("hourly", "daily", "weekly", "monthly", "quarterly", "yearly"))


class ScheduleError(RequestError):
    """What is asked for is no schedule; the message says what would be one."""


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """What a user wants done, and on which of three occasions."""

    targets: tuple[str, ...]
    at: str | None
    on_boot: bool
    on_shutdown: bool
    name: str | None
    method: Way
    rate: str | None
    engine: EngineName
    dsn: str | None
    password_file: str | None

    @property
    def occasion(self) -> str:
        return "boot" if self.on_boot else "shutdown" if self.on_shutdown else "timed"


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
    """Those of a machine."""

    schedules: tuple[Schedule, ...]


def calendar(text: str) -> str:
    """An OnCalendar expression; ``07:00 Mon..Fri`` is taken as well as ``Mon..Fri 07:00``.

    Only its form is looked at: systemd itself has the last word where it is at hand.

    :raises ScheduleError: not of that form.

    >>> calendar("07:00 Mon..Fri")
    'Mon..Fri 07:00'
    """
    if text.strip().lower() in _WORDS:
        return text.strip()
    found = " ".join(sorted(text.split(), key=_place))
    if not _CALENDAR.match(found):
        raise ScheduleError(
            f"{text!r} is not a time: write for instance 'Mon..Fri 07:00', '06:30' or"
            " '*-*-01 05:00' (systemd.time(7))",
            field="at",
        )
    return found


def _place(word: str) -> int:
    """Which part of a time a word is; any other comes last."""
    kinds = (re.fullmatch(part, word, re.IGNORECASE) for part in _PARTS)
    return next((at for at, found in enumerate(kinds) if found), len(_PARTS))


def check(wanted: ScheduleRequest) -> None:
    """:raises ScheduleError: occasion, targets or name do not go together; says what would."""
    occasions = [wanted.at is not None, wanted.on_boot, wanted.on_shutdown]
    if sum(occasions) != 1:
        raise ScheduleError("choose a time (at), on_boot or on_shutdown: one of the three")
    if wanted.at is not None:
        calendar(wanted.at)
    if bool(wanted.targets) != (wanted.at is not None):
        raise ScheduleError(
            "a schedule at a time needs targets; one on boot or shutdown takes none: it restores or"
            " saves a snapshot",
            field="targets",
        )
    if wanted.name is not None and not _NAME.match(wanted.name):
        raise ScheduleError(
            f"{wanted.name!r} is not a name: letters, digits, '_', '.' and '-', at most 64",
            field="name",
        )
    if wanted.rate is not None:
        try:
            Bytes.parse(wanted.rate.removesuffix("/s"))
        except ValueError as error:
            raise ScheduleError(str(error), field="rate") from None
    for text in wanted.targets:
        if parse(text).of_database and wanted.dsn is None:
            raise ScheduleError(
                f"only the database server knows where {text} is: name the server", field="dsn"
            )
    if wanted.dsn is not None:
        # Refuses one that holds a password.
        connect.database(wanted.engine, wanted.dsn)


def units(
    wanted: ScheduleRequest, disk: str, program: str, mounts: Sequence[PurePosixPath] = ()
) -> list[Unit]:
    """The units of a schedule.

    :param program: hotset's full path on the machine.
    :param mounts: where /etc/fstab mounts the disk.
    """
    name = wanted.name or f"{disk}-{wanted.occasion}"
    command = " ".join(quote(word) for word in (program, *_words(wanted, disk)))
    # Nothing else waits for a mount with `nofail`.
    disks = [
        systemd_unit.name_of(disk),
        *(systemd_unit.unit_of(mount, "mount") for mount in mounts),
    ]
    if wanted.at is not None:
        what = f"warm up disk {disk}"
        timer = _timer(name, what, calendar(wanted.at))
        # A time that passed while the machine was off is made up for while that starts: databases
        # come first, too.
        order = f"After=multi-user.target {' '.join(disks)}\n"
        return [_service(name, what, f"ExecStart={command}\n", order), timer]
    # Devices and mounts come up before it; at shutdown they go down after it.
    order = f"After=local-fs.target remote-fs.target {' '.join(disks)}\n"
    if wanted.on_boot:
        what = f"cache what disk {disk} had cached when the machine went down"
        needs = f"{order}ConditionPathExists={_snapshot(disk)}\n"
        return [_service(name, what, f"ExecStart={command}\n", needs, _TARGETS[0])]
    run = f"RemainAfterExit=yes\nExecStart=/bin/true\nExecStop={command}\n"
    what = f"save what disk {disk} has cached"
    return [_service(name, what, run, order, _TARGETS[0])]


def _words(wanted: ScheduleRequest, disk: str) -> list[str]:
    """hotset's arguments, which are for the machine the units are on."""
    file = str(_snapshot(disk))
    if wanted.on_shutdown:
        return ["warmup", "snapshot", disk, "--output", file]
    limit = [] if wanted.rate is None else ["--rate", wanted.rate]
    how = ["--disk", disk, "--method", wanted.method, *limit]
    if wanted.on_boot:
        return ["warmup", "restore", file, *how]
    server = [] if wanted.dsn is None else ["--engine", wanted.engine, "--dsn", wanted.dsn]
    if wanted.password_file is not None:
        server += ["--password-file", wanted.password_file]
    return ["warmup", "run", *wanted.targets, *how, *server]


def _snapshot(disk: str) -> PurePosixPath:
    return SNAPSHOTS / f"{disk}.snapshot"


def _service(name: str, what: str, run: str, order: str = "", wanted_by: str = "") -> Unit:
    install = f"\n[Install]\nWantedBy={wanted_by}\n" if wanted_by else ""
    return Unit(
        f"{PREFIX}{name}.service",
        f"[Unit]\nDescription=hotset: {what}\n{order}"
        f"\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\n"
        f"StateDirectory={SNAPSHOTS.name}\nStateDirectoryMode=0700\n{run}{install}",
    )


def _timer(name: str, what: str, at: str) -> Unit:
    return Unit(
        f"{PREFIX}{name}.timer",
        f"[Unit]\nDescription=hotset: {what}\n"
        f"\n[Timer]\nOnCalendar={at}\nPersistent=true\n\n[Install]\nWantedBy={_TARGETS[1]}\n",
    )


def quote(word: str) -> str:
    """A word of ExecStart: systemd takes specifiers, variables and escapes apart.

    >>> quote("/srv/100 %/$x")
    '"/srv/100 %%/$$x"'
    """
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{word}"' if re.search(r"[\s'\"\\;]", word) or not word else word


def program_on(machine: Machine) -> str:
    """hotset's full path on a machine.

    :raises PrerequisiteMissingError: it is not installed there.
    """
    for path in ("/usr/local/bin/hotset", "/usr/bin/hotset", "/opt/hotset/bin/hotset"):
        if machine.run(["test", "-x", path], check=False).rc == 0:
            return path
    raise PrerequisiteMissingError(
        f"hotset is not installed on {machine.kind} (/usr/local/bin/hotset), where the unit has to"
        " run it: install it, or name its full path",
        field="program",
    )


def check_program(machine: Machine, path: str) -> str:
    """:raises PrerequisiteMissingError: nothing that runs is there.

    :raises ScheduleError: not a full path.
    """
    if not path.startswith("/"):
        raise ScheduleError(f"{path!r} is not a full path", field="program")
    if machine.run(["test", "-x", path], check=False).rc:
        raise PrerequisiteMissingError(
            f"there is no program {path} on {machine.kind}", field="program"
        )
    return path


def install(machine: Machine, wanted: Sequence[Unit], *, enable: bool) -> None:
    """Write the units and have systemd know them, in the place of a schedule of the same name.

    :raises ScheduleError: systemd finds fault with a unit.
    :raises PrerequisiteMissingError: systemd does not run there, or does not take them.
    """
    if not systemd_unit.runs(machine):
        raise PrerequisiteMissingError(
            f"systemd does not run on {machine.kind}, and would have to start it: nothing was"
            " written",
            Remedy("see the command, for cron to call", parameters={"dry_run": True}),
        )
    _verify(machine, wanted)
    _end_earlier(machine, wanted[0].name.rpartition(".")[0])
    for unit in wanted:
        put_text(machine, unit.text, unit.path)
    # A timer starts its service, which is not enabled itself; what is to be stopped at shutdown has
    # to be started first; what is for the next boot is not for now.
    last = wanted[-1]
    now = ["--now"] if last.name.endswith(".timer") or _value(last, "ExecStop") else []
    steps = [["daemon-reload"], *([["enable", *now, last.name]] if enable else [])]
    for step in steps:
        done = machine.run(["systemctl", *step], check=False)
        if done.rc:
            said = (done.stderr.strip() or "no reason given").splitlines()[0]
            raise PrerequisiteMissingError(
                f"{', '.join(str(unit.path) for unit in wanted)}: written, but `systemctl"
                f" {' '.join(step)}` fails on {machine.kind}: {said}"
            )


def _verify(machine: Machine, wanted: Sequence[Unit]) -> None:
    """Ask systemd before anything is changed, where it can be asked."""
    if not _has_systemd_analyze(machine):
        return
    with scratch.folder(machine, None) as folder:
        paths = [folder / unit.name for unit in wanted]
        for unit, path in zip(wanted, paths, strict=True):
            put_text(machine, unit.text, path)
        checked = machine.run(["systemd-analyze", "verify", *map(str, paths)], check=False)
    if checked.rc:
        words = (checked.stderr.strip() or checked.stdout.strip()).splitlines()
        raise ScheduleError(f"systemd rejects the units: {' / '.join(words[:3])}")


def _end_earlier(machine: Machine, stem: str) -> None:
    names = [f"{stem}.{kind}" for kind in ("timer", "service")]
    there = machine.run(["ls", *(str(FOLDER / name) for name in names)], check=False).stdout
    found = [name for name in names if str(FOLDER / name) in there.split()]
    if found:
        _end(machine, found)


def check_calendar(machine: Machine, at: str) -> None:
    """Ask systemd, where it is at hand.

    :raises ScheduleError: it does not understand the time.
    """
    if not _has_systemd_analyze(machine):
        return
    checked = machine.run(["systemd-analyze", "calendar", at], check=False)
    if checked.rc:
        said = checked.stderr.strip().splitlines() or ["no reason given"]
        raise ScheduleError(f"systemd refuses {at!r}: {said[0]}", field="at")


def skipped(machine: Machine, at: str) -> list[str]:
    """Of the next times those that the machine's clock is set forward over, which systemd leaves
    out, as ``2027-03-28 02:30:00``. Empty where they are not known.

    :param at: as :func:`calendar` gives it.
    """
    if re.fullmatch(_PARTS[3], at.rsplit(maxsplit=1)[-1], re.IGNORECASE):
        return []
    here, everywhere = _next_times(machine, at), _next_times(machine, at, "env", "TZ=UTC")
    return [one for one in everywhere if here and here[0] < one < here[-1] and one not in here]


def _next_times(machine: Machine, at: str, *zone: str) -> list[str]:
    """More than a year of times once a day."""
    if not _has_systemd_analyze(machine):
        return []
    argv = [*zone, "systemd-analyze", "calendar", "--iterations=400", at]
    shown = machine.run(argv, check=False).stdout
    return re.findall(r"(?:Next elapse|Iter\S* #\d+): \w+ (\S+ \S+)", shown)


def list_units(machine: Machine) -> list[Unit]:
    """The units of hotset's schedules."""
    if machine.run(["test", "-d", str(FOLDER)], check=False).rc:
        return []
    names = machine.run(["ls", str(FOLDER)]).stdout.split()
    found = [name for name in sorted(names) if name.startswith(PREFIX)]
    return [Unit(name, machine.run(["cat", str(FOLDER / name)]).stdout) for name in found]


def rows(machine: Machine, found: Sequence[Unit]) -> list[Schedule]:
    """What there is to tell of each schedule."""
    timers = {unit.name: unit for unit in found if unit.name.endswith(".timer")}
    services = [unit for unit in found if unit.name not in timers]
    outcomes = _outcomes(machine, [unit.name for unit in services])
    listed = []
    for unit in services:
        stem = unit.name.removesuffix(".service")
        timer = timers.get(f"{stem}.timer")
        key = "ExecStop" if _value(unit, "ExecStop") else "ExecStart"
        occasion = "shutdown" if key == "ExecStop" else "boot"
        when = _value(timer, "OnCalendar") if timer else occasion
        last, ended = outcomes.get(unit.name, _NEVER)
        if key == "ExecStop":
            last, ended = _saved(machine, _disk_of(unit))
        listed.append(Schedule(stem.removeprefix(PREFIX), when, last, ended, _value(unit, key)))
    return listed


def _outcomes(machine: Machine, services: Sequence[str]) -> dict[str, tuple[Last, str]]:
    """How the last run of each came out since the machine's start, and when it ended."""
    if not services or not systemd_unit.runs(machine):
        return {}
    keys = "Id,ActiveState,Result,ExecMainExitTimestampMonotonic,ExecMainExitTimestamp"
    shown = machine.run(["systemctl", "show", f"--property={keys}", *services], check=False).stdout
    found = dict[str, tuple[Last, str]]()
    for block in shown.split("\n\n"):
        said = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        ended = said.get("ExecMainExitTimestamp", "")
        if said.get("ActiveState") in ("activating", "reloading"):
            found[said["Id"]] = ("running", "")
        elif said.get("ExecMainExitTimestampMonotonic", "0") != "0":
            found[said["Id"]] = ("done" if said.get("Result") == "success" else "failed", ended)
        elif said.get("ActiveState") == "failed":
            found[said["Id"]] = ("failed", "")
    return found


def runs_of_disk(machine: Machine, disk: str) -> list[tuple[Schedule, Run | None]]:
    """A disk's schedules, each with its last run; None: systemd tells none."""
    mine = of_disk(list_units(machine), disk)
    runs = last_runs(machine, mine) if mine else {}
    return [(one, runs.get(one.name)) for one in rows(machine, mine)]


def last_runs(machine: Machine, found: Sequence[Unit]) -> dict[str, Run]:
    """How long the last run of each schedule took, and whether there will be another, by the
    schedule's name. Nothing where systemd does not answer."""
    if not systemd_unit.runs(machine):
        return {}
    keys = "Id,ActiveState,ExecMainStartTimestampMonotonic,ExecMainExitTimestampMonotonic"
    names = [unit.name for unit in found]
    shown = machine.run(["systemctl", "show", f"--property={keys}", *names], check=False).stdout
    blocks = [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        for block in shown.split("\n\n")
    ]
    units = {block["Id"]: block for block in blocks if "Id" in block}
    words = machine.run(["cat", "/proc/uptime"], check=False).stdout.split()
    now = float(words[0]) if words else 0.0
    runs = {}
    for name in (one for one in names if one.endswith(".service") and one in units):
        stem, said = name.removesuffix(".service"), units[name]
        begun, ended = (
            int(said.get(f"ExecMain{which}TimestampMonotonic", 0)) / 1e6
            for which in ("Start", "Exit")
        )
        seconds = (ended if ended >= begun else now) - begun if begun else 0.0
        waits = f"{stem}.timer" not in names or _is_on(units.get(f"{stem}.timer", {}))
        runs[stem.removeprefix(PREFIX)] = Run(max(0.0, seconds), waits)
    return runs


def _is_on(said: Mapping[str, str]) -> bool:
    return said.get("ActiveState") == "active"


def _saved(machine: Machine, disk: str) -> tuple[Last, str]:
    """As of :func:`_outcomes`; systemd forgets at the start what it did at the shutdown."""
    saved = machine.run(["stat", "--format=%y", str(_snapshot(disk))], check=False)
    # To the second, as systemd tells its times.
    at = re.sub(r"\.\d+", "", saved.stdout.strip())
    return ("done", at) if saved.rc == 0 else _NEVER


def _value(unit: Unit, key: str) -> str:
    found = re.search(rf"^{key}=(.*)$", unit.text, re.MULTILINE)
    return found[1] if found else ""


def remove(machine: Machine, name: str) -> list[str]:
    """Remove a schedule's units; returns their names.

    :raises ScheduleError: there is none of that name; names those there are.
    """
    there = {unit.name for unit in list_units(machine)}
    names = [f"{PREFIX}{name}.{kind}" for kind in ("timer", "service")]
    found = [one for one in names if one in there]
    if not found:
        known = sorted({one.removeprefix(PREFIX).rpartition(".")[0] for one in there})
        raise ScheduleError(
            f"there is no schedule {name!r}; there are: {', '.join(known) or 'none'}", field="name"
        )
    _end(machine, found)
    return found


def end_for(machine: Machine, disk: str) -> list[str]:
    """End the schedules of a disk that is no more, which would fail from now on, and remove its
    snapshot, which is of no use to the next disk of its name; returns the units' names."""
    found = [unit.name for unit in of_disk(list_units(machine), disk)]
    if found:
        # Timers first: none begins while its service ends.
        _end(machine, sorted(found, key=lambda name: not name.endswith(".timer")))
    machine.run(["rm", "-f", str(_snapshot(disk))])
    return found


def of_disk(units: Sequence[Unit], disk: str) -> list[Unit]:
    """Those of a disk's schedules."""
    mine = {unit.name.rpartition(".")[0] for unit in units if _disk_of(unit) == disk}
    return [unit for unit in units if unit.name.rpartition(".")[0] in mine]


def _disk_of(unit: Unit) -> str:
    """By the command that :func:`_words` made; empty for a timer."""
    command = _value(unit, "ExecStop") or _value(unit, "ExecStart")
    named = re.search(r" --disk (\S+)| warmup snapshot (\S+) --output ", command)
    return (named[1] or named[2]) if named else ""


def _end(machine: Machine, units: Sequence[str]) -> None:
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
    wanted = [FOLDER / f"{target}.wants" / name for target in _TARGETS for name in names]
    machine.run(["rm", "-f", *map(str, (*(FOLDER / name for name in names), *wanted, *stamps))])


def _has_systemd_analyze(machine: Machine) -> bool:
    places = ("/usr/bin/systemd-analyze", "/bin/systemd-analyze")
    return any(machine.run(["test", "-x", path], check=False).rc == 0 for path in places)

"""Warm-ups at set times, at the machine's start and at its shutdown: systemd units.

Source: systemd.timer(5), systemd.time(7), systemd.unit(5), systemd.service(5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from hotset.core.errors import GIVE_PASSWORD, Remedy
from hotset.core.machines import locks
from hotset.core.machines.base import Machine, PrerequisiteMissingError, put_text
from hotset.core.sql import EngineName
from hotset.databases import connect
from hotset.databases.product import DsnError
from hotset.disk.boot import schedules, systemd_unit
from hotset.disk.boot.systemd_unit import FOLDER

from .schedule_request import Add
from .targets import parse

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


def calendar(text: str) -> str:
    """An OnCalendar expression; ``07:00 Mon..Fri`` is taken as well as ``Mon..Fri 07:00``.

    Only its form is looked at: systemd itself has the last word where it is at hand.

    :raises ScheduleError: not of that form.

    >>> calendar("07:00 Mon..Fri")
    'Mon..Fri 07:00'
    """
    if text.strip().lower() in _WORDS:
        return text.strip()
    expression = " ".join(sorted(text.split(), key=_place))
    if not _CALENDAR.match(expression):
        raise schedules.ScheduleError(
            f"{text!r} is not a time: write for instance 'Mon..Fri 07:00', '06:30' or"
            " '*-*-01 05:00' (systemd.time(7))",
            field="at",
        )
    return expression


def _place(word: str) -> int:
    """Which part of a time a word is; any other comes last."""
    kinds = (re.fullmatch(part, word, re.IGNORECASE) for part in _PARTS)
    return next((at for at, matches in enumerate(kinds) if matches), len(_PARTS))


def check(wanted: Add) -> None:
    """:raises ScheduleError: occasion, targets or name do not go together; says what would."""
    occasions = [wanted.at is not None, wanted.on_boot, wanted.on_shutdown]
    if sum(occasions) != 1:
        raise schedules.ScheduleError(
            "choose a time (at), on_boot or on_shutdown: one of the three"
        )
    if wanted.at is not None:
        calendar(wanted.at)
    if bool(wanted.targets) != (wanted.at is not None):
        raise schedules.ScheduleError(
            "a schedule at a time needs targets; one on boot or shutdown takes none: it restores or"
            " saves a snapshot",
            field="targets",
        )
    if wanted.name is not None and not _NAME.match(wanted.name):
        raise schedules.ScheduleError(
            f"{wanted.name!r} is not a name: letters, digits, '_', '.' and '-', at most 64",
            field="name",
        )
    for text in wanted.targets or ():
        if parse(text).of_database and wanted.dsn is None:
            raise schedules.ScheduleError(
                f"only the database server knows where {text} is: name the server", field="dsn"
            )
    if wanted.dsn is not None:
        _check_server(wanted.engine, wanted.dsn)


def _check_server(engine: EngineName, dsn: str) -> None:
    """:raises DsnError: it cannot be read, or holds a password: a schedule's is read from a file
    where it runs."""
    try:
        connect.database(engine, dsn)
    except DsnError as error:
        by_file = replace(GIVE_PASSWORD, parameters={"password_file": "FILE"})
        error.remedies = tuple(
            by_file if remedy == GIVE_PASSWORD else remedy for remedy in error.remedies
        )
        raise


def units(
    wanted: Add, disk: str, program: str, mounts: Sequence[PurePosixPath] = ()
) -> list[schedules.Unit]:
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
        needs = f"{order}ConditionPathExists={schedules.snapshot_of(disk)}\n"
        return [_service(name, what, f"ExecStart={command}\n", needs, schedules.WANTED_BY[0])]
    run = f"RemainAfterExit=yes\nExecStart=/bin/true\nExecStop={command}\n"
    what = f"save what disk {disk} has cached"
    return [_service(name, what, run, order, schedules.WANTED_BY[0])]


def _words(wanted: Add, disk: str) -> list[str]:
    """hotset's arguments, which are for the machine the units are on."""
    file = str(schedules.snapshot_of(disk))
    if wanted.on_shutdown:
        return ["warmup", "snapshot", disk, "--output", file]
    limit = [] if wanted.rate is None else ["--rate", wanted.rate]
    how = ["--disk", disk, "--method", wanted.method, *limit]
    if wanted.on_boot:
        return ["warmup", "restore", file, *how]
    server = [] if wanted.dsn is None else ["--engine", wanted.engine, "--dsn", wanted.dsn]
    if wanted.password_file is not None:
        server += ["--password-file", wanted.password_file]
    return ["warmup", "run", *(wanted.targets or ()), *how, *server]


def _service(
    name: str, what: str, run: str, order: str = "", wanted_by: str = ""
) -> schedules.Unit:
    install = f"\n[Install]\nWantedBy={wanted_by}\n" if wanted_by else ""
    return schedules.Unit(
        f"{schedules.PREFIX}{name}.service",
        f"[Unit]\nDescription=hotset: {what}\n{order}"
        f"\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\n"
        f"StateDirectory={schedules.SNAPSHOTS.name}\nStateDirectoryMode=0700\n{run}{install}",
    )


def _timer(name: str, what: str, at: str) -> schedules.Unit:
    return schedules.Unit(
        f"{schedules.PREFIX}{name}.timer",
        f"[Unit]\nDescription=hotset: {what}\n"
        f"\n[Timer]\nOnCalendar={at}\nPersistent=true\n\n[Install]\nWantedBy={schedules.WANTED_BY[1]}\n",
    )


def quote(word: str) -> str:
    """A word of ExecStart: systemd takes specifiers, variables and escapes apart.

    >>> quote("/srv/100 %/$x")
    '"/srv/100 %%/$$x"'
    """
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{word}"' if re.search(r"[\s'\"\\;]", word) or not word else word


def find_program(machine: Machine, named: str | None) -> str:
    """hotset's full path on a machine.

    :param named: by the user; None: where it is usually installed.
    :raises PrerequisiteMissingError: nothing that runs is there.
    :raises ScheduleError: not a full path.
    """
    if named is not None and not named.startswith("/"):
        raise schedules.ScheduleError(f"{named!r} is not a full path", field="program")
    usual = ("/usr/local/bin/hotset", "/usr/bin/hotset", "/opt/hotset/bin/hotset")
    for path in usual if named is None else (named,):
        if machine.run(["test", "-x", path], check=False).rc == 0:
            return path
    why = (
        f"hotset is not installed on {machine.kind} (/usr/local/bin/hotset), where the unit has to"
        " run it: install it, or name its full path"
        if named is None
        else f"there is no program {named} on {machine.kind}"
    )
    raise PrerequisiteMissingError(why, field="program")


def install(machine: Machine, wanted: Sequence[schedules.Unit], *, enable: bool) -> None:
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
    now = ["--now"] if last.name.endswith(".timer") or schedules.value_of(last, "ExecStop") else []
    steps = [["daemon-reload"], *([["enable", *now, last.name]] if enable else [])]
    for step in steps:
        done = machine.run(["systemctl", *step], check=False)
        if done.rc:
            message = (done.stderr.strip() or "no reason given").splitlines()[0]
            raise PrerequisiteMissingError(
                f"{', '.join(str(unit.path) for unit in wanted)}: written, but `systemctl"
                f" {' '.join(step)}` fails on {machine.kind}: {message}"
            )


def _verify(machine: Machine, wanted: Sequence[schedules.Unit]) -> None:
    """Ask systemd before anything is changed, where it can be asked."""
    if not _has_systemd_analyze(machine):
        return
    with locks.scratch_folder(machine, None) as folder:
        paths = [folder / unit.name for unit in wanted]
        for unit, path in zip(wanted, paths, strict=True):
            put_text(machine, unit.text, path)
        checked = machine.run(["systemd-analyze", "verify", *map(str, paths)], check=False)
    if checked.rc:
        words = (checked.stderr.strip() or checked.stdout.strip()).splitlines()
        raise schedules.ScheduleError(f"systemd rejects the units: {' / '.join(words[:3])}")


def _end_earlier(machine: Machine, stem: str) -> None:
    names = [f"{stem}.{kind}" for kind in ("timer", "service")]
    listing = machine.run(["ls", *(str(FOLDER / name) for name in names)], check=False).stdout
    present = [name for name in names if str(FOLDER / name) in listing.split()]
    if present:
        schedules.end(machine, present)


def check_calendar(machine: Machine, at: str) -> None:
    """Ask systemd, where it is at hand.

    :raises ScheduleError: it does not understand the time.
    """
    if not _has_systemd_analyze(machine):
        return
    checked = machine.run(["systemd-analyze", "calendar", at], check=False)
    if checked.rc:
        lines = checked.stderr.strip().splitlines() or ["no reason given"]
        raise schedules.ScheduleError(f"systemd refuses {at!r}: {lines[0]}", field="at")


def skipped_days(machine: Machine, at: str) -> list[str]:
    """List the next times that the machine's clock is set forward over, which systemd leaves
    out, as ``2027-03-28 02:30:00``. Empty where they are not known.

    :param at: as :func:`calendar` gives it.
    """
    if re.fullmatch(_PARTS[3], at.rsplit(maxsplit=1)[-1], re.IGNORECASE):
        return []
    here, everywhere = _next_times(machine, at), _next_times(machine, at, "env", "TZ=UTC")
    return [time for time in everywhere if here and here[0] < time < here[-1] and time not in here]


def _next_times(machine: Machine, at: str, *zone: str) -> list[str]:
    """More than a year of times once a day."""
    if not _has_systemd_analyze(machine):
        return []
    argv = [*zone, "systemd-analyze", "calendar", "--iterations=400", at]
    shown = machine.run(argv, check=False).stdout
    return re.findall(r"(?:Next elapse|Iter\S* #\d+): \w+ (\S+ \S+)", shown)


def _has_systemd_analyze(machine: Machine) -> bool:
    places = ("/usr/bin/systemd-analyze", "/bin/systemd-analyze")
    return any(machine.run(["test", "-x", path], check=False).rc == 0 for path in places)

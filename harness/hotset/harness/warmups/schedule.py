"""Warm-ups at set times, at the machine's start and at its shutdown: systemd units.

Source: systemd.timer(5), systemd.time(7), systemd.unit(5), systemd.service(5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hotset.cachelayer.machine import EnvironmentLacksError, Machine, put_text

FOLDER = PurePosixPath("/etc/systemd/system")
SNAPSHOTS = PurePosixPath("/var/lib/hotset")
PREFIX = "hotset-warmup-"
When = Literal["at", "boot", "shutdown"]
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_DAYS = re.compile(rf"^{_DAY}(?:(?:\.\.|,){_DAY})*$", re.IGNORECASE)
_FIELD = r"(?:\*|\d{1,4}(?:\.\.\d{1,4})?(?:/\d{1,4})?)(?:,\d{1,4}(?:\.\.\d{1,4})?)*"
_DATE = re.compile(rf"^{_FIELD}-{_FIELD}(?:-{_FIELD})?$")
_TIME = re.compile(rf"^{_FIELD}:{_FIELD}(?::{_FIELD})?$")
_WORDS = frozenset(
    "minutely hourly daily monthly weekly yearly quarterly semiannually annually".split()
)


class ScheduleError(ValueError):
    """What is asked for is no schedule; the message says what would be one."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit's file: its name and text."""

    name: str
    text: str

    @property
    def path(self) -> PurePosixPath:
        return FOLDER / self.name


def calendar(text: str) -> str:
    """An OnCalendar expression; ``07:00 Mon..Fri`` is taken as well as ``Mon..Fri 07:00``.

    Only its form is looked at: systemd itself has the last word where it is at hand.

    :raises ScheduleError: not of that form.

    >>> calendar("07:00 Mon..Fri")
    'Mon..Fri 07:00'
    """
    words = text.split()
    if len(words) == 1 and words[0].lower() in _WORDS:
        return text.strip()
    words.sort(key=lambda word: 0 if _DAYS.match(word) else 1 if _DATE.match(word) else 2)
    forms = {2: (_DAYS, _TIME), 1: (_TIME,), 3: (_DAYS, _DATE, _TIME)}.get(len(words), ())
    if len(words) == 2 and not _DAYS.match(words[0]):
        forms = (_DATE, _TIME)
    if not forms or not all(form.match(word) for form, word in zip(forms, words, strict=True)):
        raise ScheduleError(
            f"--at {text!r} is no time: write for instance 'Mon..Fri 07:00', '06:30' or"
            " '*-*-01 05:00' (systemd.time(7))"
        )
    return " ".join(words)


def check_name(name: str) -> str:
    """:raises ScheduleError: not a name a unit may have."""
    if not _NAME.match(name):
        raise ScheduleError(f"--name {name!r}: letters, digits, '_', '.' and '-', at most 64")
    return name


def units(
    name: str, when: When, at: str | None, program: str, words: Sequence[str], what: str
) -> list[Unit]:
    """The units of a schedule.

    :param program: hotset's full path on the machine.
    :param words: its arguments.
    :param what: for the description.
    """
    command = " ".join(quoted(word) for word in (program, *words))
    if when == "at":
        assert at is not None
        return [_service(name, what, f"ExecStart={command}\n"), _timer(name, what, at)]
    # The cards' devices and mounts come up before; at shutdown they go down after.
    order = "After=local-fs.target remote-fs.target\n"
    if when == "boot":
        return [_service(name, what, f"ExecStart={command}\n", order, "multi-user.target")]
    stop = f"RemainAfterExit=yes\nExecStart=/bin/true\nExecStop={command}\n"
    return [_service(name, what, stop, order, "multi-user.target")]


def _service(name: str, what: str, run: str, order: str = "", wanted_by: str = "") -> Unit:
    install = f"\n[Install]\nWantedBy={wanted_by}\n" if wanted_by else ""
    return Unit(
        f"{PREFIX}{name}.service",
        f"[Unit]\nDescription=hotset: {what}\n{order}"
        f"\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\n{run}{install}",
    )


def _timer(name: str, what: str, at: str) -> Unit:
    return Unit(
        f"{PREFIX}{name}.timer",
        f"[Unit]\nDescription=hotset: {what}\n"
        f"\n[Timer]\nOnCalendar={at}\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n",
    )


def quoted(word: str) -> str:
    """A word of ExecStart: systemd takes specifiers, variables and escapes apart.

    >>> quoted("/srv/100 %/$x")
    '"/srv/100 %%/$$x"'
    """
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{word}"' if re.search(r"[\s'\"\\;]", word) or not word else word


def program_on(machine: Machine) -> str:
    """hotset's full path on a machine.

    :raises EnvironmentLacksError: it is not installed there.
    """
    for path in ("/usr/local/bin/hotset", "/usr/bin/hotset", "/opt/hotset/bin/hotset"):
        if machine.run(["test", "-x", path], check=False).rc == 0:
            return path
    raise EnvironmentLacksError(
        f"hotset is not installed on {machine.kind} (/usr/local/bin/hotset): the unit has to run"
        " it there. Install it there, or say where it is (--program /full/path/hotset)"
    )


def check_program(machine: Machine, path: str) -> str:
    """:raises EnvironmentLacksError: nothing that runs is there.

    :raises ScheduleError: not a full path.
    """
    if not path.startswith("/"):
        raise ScheduleError(f"--program {path!r}: a unit needs a full path")
    if machine.run(["test", "-x", path], check=False).rc:
        raise EnvironmentLacksError(f"--program {path}: there is no such program on {machine.kind}")
    return path


def install(machine: Machine, wanted: Sequence[Unit], *, enable: bool) -> None:
    """Write the units and have systemd know them.

    :raises ScheduleError: systemd does not take the time, or finds fault with a unit.
    """
    for unit in wanted:
        put_text(machine, unit.text, unit.path)
    if _has_systemd_analyze(machine):
        paths = [str(unit.path) for unit in wanted]
        checked = machine.run(["systemd-analyze", "verify", *paths], check=False)
        if checked.rc:
            _delete(machine, [unit.name for unit in wanted])
            words = (checked.stderr.strip() or checked.stdout.strip()).splitlines()
            raise ScheduleError(f"systemd finds fault with the units: {' / '.join(words[:3])}")
    machine.run(["systemctl", "daemon-reload"])
    if enable:
        # A service of a timer is not enabled itself: the timer starts it.
        machine.run(["systemctl", "enable", "--now", wanted[-1].name])


def check_calendar(machine: Machine, at: str) -> None:
    """Ask systemd, where it is at hand.

    :raises ScheduleError: it does not understand the time.
    """
    if not _has_systemd_analyze(machine):
        return
    checked = machine.run(["systemd-analyze", "calendar", at], check=False)
    if checked.rc:
        said = checked.stderr.strip().splitlines() or ["no reason given"]
        raise ScheduleError(f"--at {at!r}: systemd does not take it: {said[0]}")


def installed(machine: Machine) -> list[Unit]:
    """The units of hotset's schedules."""
    if machine.run(["test", "-d", str(FOLDER)], check=False).rc:
        return []
    names = machine.run(["ls", str(FOLDER)]).stdout.split()
    found = [name for name in sorted(names) if name.startswith(PREFIX)]
    return [Unit(name, machine.run(["cat", str(FOLDER / name)]).stdout) for name in found]


def remove(machine: Machine, name: str) -> list[str]:
    """Remove a schedule's units; returns their names.

    :raises ScheduleError: there is none of that name; names those there are.
    """
    there = {unit.name for unit in installed(machine)}
    names = [f"{PREFIX}{name}.{kind}" for kind in ("timer", "service")]
    found = [one for one in names if one in there]
    if not found:
        known = sorted({one.removeprefix(PREFIX).rpartition(".")[0] for one in there})
        raise ScheduleError(f"NAME {name!r}: there is no such schedule; there is:"
                            f" {', '.join(known) or 'none'}")  # fmt: skip
    machine.run(["systemctl", "disable", "--now", *found], check=False)
    _delete(machine, found)
    machine.run(["systemctl", "daemon-reload"])
    return found


def _delete(machine: Machine, names: Sequence[str]) -> None:
    machine.run(["rm", "-f", *(str(FOLDER / name) for name in names)])


def _has_systemd_analyze(machine: Machine) -> bool:
    places = ("/usr/bin/systemd-analyze", "/bin/systemd-analyze")
    return any(machine.run(["test", "-x", path], check=False).rc == 0 for path in places)

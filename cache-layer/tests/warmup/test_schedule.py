"""Schedules: units of systemd, and what is refused before one is written."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.errors import of_command_line
from hotset.core.machines import locks
from hotset.core.machines import names as connect
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.local import Local
from hotset.core.operation import Context
from hotset.core.progress import Reporter
from hotset.databases.product import DsnError
from hotset.disk import flash_devices
from hotset.disk.boot import fstab, schedules
from hotset.disk.boot.schedules import ScheduleError, Unit
from hotset.operations import table
from hotset.warmup import schedule
from hotset.warmup.schedule import calendar, quote
from hotset.warmup.schedule_request import Add
from tests.fake_machine import Answer, FakeMachine
from tests.support.active_disk import server
from tests.support.dm_cache_lines import LINE
from tests.support.flash_devices import FLASH

TIMED = Add(targets=["/srv/pg/base"], at="07:00 Mon..Fri")
PROGRAM = "/usr/local/bin/hotset"


def replace(request: Add, **fields: object) -> Add:
    return request.model_copy(update=fields)


def no_systemctl() -> str:
    raise PrerequisiteMissingError("systemctl is not installed on vm")


NO_SYSTEMD: dict[str, Answer] = {"test -d /run/systemd/system": 1, "systemctl": no_systemctl}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("07:00 Mon..Fri", "Mon..Fri 07:00"),
        ("Mon..Fri 07:00", "Mon..Fri 07:00"),
        ("06:30", "06:30"),
        ("*-*-01 05:00:00", "*-*-01 05:00:00"),
        ("Mon,Thu *-*-* 5:15", "Mon,Thu *-*-* 5:15"),
        ("daily", "daily"),
        ("*:0/15", "*:0/15"),
        ("Sat *-*-1..7 18:00", "Sat *-*-1..7 18:00"),
        ("07:00 Mon Europe/Berlin", "Mon 07:00 Europe/Berlin"),
    ],
)
def test_times_that_systemd_takes(text: str, found: str) -> None:
    assert calendar(text) == found
    if shutil.which("systemd-analyze"):
        subprocess.run(["systemd-analyze", "calendar", found], check=True, capture_output=True)


@pytest.mark.parametrize("text", ["", "7 o'clock", "Mon..Fri", "Moonday 07:00", "07:00 07:00", "7"])
def test_what_is_no_time_is_told_the_form(text: str) -> None:
    with pytest.raises(ScheduleError, match=r"'Mon\.\.Fri 07:00'"):
        calendar(text)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_a_time_that_the_clock_is_set_forward_over_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    found = schedule.skipped_days(Local(), "02:30")
    assert found
    for one in found:
        at = datetime.fromisoformat(one)
        assert (at.month, at.isoweekday(), at.hour, at.minute) == (3, 7, 2, 30)
    for text in ("03:30", "Mon..Fri 02:30", "02:30 UTC", "02:30 Asia/Tokyo", "daily"):
        assert schedule.skipped_days(Local(), text) == []
    monkeypatch.setenv("TZ", "UTC")
    assert schedule.skipped_days(Local(), "02:30") == []


def parsed(unit: Unit) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(unit.text)
    return found


def test_a_timer_runs_a_service_of_its_name() -> None:
    wanted = replace(
        TIMED,
        targets=("table:public.orders", "/srv/100 % full"),
        rate="50MB/s",
        dsn="host=db user=me dbname=x",
        password_file="/etc/hotset/pw",  # noqa: S106
    )
    service, timer = schedule.units(wanted, "pg", PROGRAM)
    assert service.path == PurePosixPath("/etc/systemd/system/hotset-warmup-pg-timed.service")
    assert timer.name == "hotset-warmup-pg-timed.timer"
    assert parsed(timer)["Timer"] == {"OnCalendar": "Mon..Fri 07:00", "Persistent": "true"}
    assert parsed(timer)["Install"]["WantedBy"] == "timers.target"
    assert parsed(service)["Service"]["Type"] == "oneshot"
    assert parsed(service)["Service"]["ExecStart"] == (
        f'{PROGRAM} warmup run table:public.orders "/srv/100 %% full" --disk pg --method auto'
        ' --rate 50MB/s --engine postgres --dsn "host=db user=me dbname=x"'
        " --password-file /etc/hotset/pw"
    )
    assert "Install" not in parsed(service), "the timer starts it, not the boot"


@pytest.mark.parametrize("occasion", ["at", "on_boot", "on_shutdown"])
def test_a_schedule_waits_for_its_disk_wherever_that_is_mounted(occasion: str) -> None:
    """A mount with `nofail` is in no target's order; a time that was missed is made up for as early
    as a boot gets to it."""
    none = replace(TIMED, targets=(), at=None)
    occasions: dict[str, Add] = {
        "at": TIMED,
        "on_boot": replace(none, on_boot=True),
        "on_shutdown": replace(none, on_shutdown=True),
    }
    wanted = occasions[occasion]
    mounts = [PurePosixPath("/srv/pg"), PurePosixPath("/srv/my-log")]
    after = parsed(schedule.units(wanted, "pg", PROGRAM, mounts)[0])["Unit"]["After"].split()
    assert {"hotset-tier-pg.service", "srv-pg.mount", "srv-my\\x2dlog.mount"} <= set(after)
    # Which comes after the database server.
    assert ("multi-user.target" in after) == (occasion == "at")


def test_the_places_are_those_of_fstab() -> None:
    machine = FakeMachine()
    machine.files["/etc/fstab"] = ("/dev/mapper/hotset-pg /srv/my\\040pg ext4 nofail 0 2\n", 0o644)
    found = fstab.folders(machine, PurePosixPath("/dev/mapper/hotset-pg"))
    assert found == [PurePosixPath("/srv/my pg")]
    assert fstab.folders(machine, PurePosixPath("/dev/mapper/hotset-other")) == []


def test_what_is_saved_at_shutdown_is_restored_at_boot() -> None:
    (boot,) = schedule.units(replace(TIMED, targets=(), at=None, on_boot=True), "pg", PROGRAM)
    (down,) = schedule.units(replace(TIMED, targets=(), at=None, on_shutdown=True), "pg", PROGRAM)
    file = "/var/lib/hotset/pg.snapshot"
    assert parsed(down)["Service"]["ExecStop"] == f"{PROGRAM} warmup snapshot pg --output {file}"
    assert parsed(down)["Service"]["RemainAfterExit"] == "yes"
    assert parsed(boot)["Service"]["ExecStart"].startswith(f"{PROGRAM} warmup restore {file} ")
    assert parsed(boot)["Unit"]["ConditionPathExists"] == file
    for unit in (boot, down):
        after = parsed(unit)["Unit"]["After"].split()
        assert {"local-fs.target", "hotset-tier-pg.service"} <= set(after)
        assert parsed(unit)["Install"]["WantedBy"] == "multi-user.target"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_finds_no_fault_with_the_units(tmp_path: Path) -> None:
    program = "/bin/true"
    down = replace(TIMED, targets=(), at=None, on_shutdown=True)
    units = [*schedule.units(TIMED, "pg", program), *schedule.units(down, "pg", program)]
    for unit in units:
        (tmp_path / unit.name).write_text(unit.text)
    paths = [str(tmp_path / unit.name) for unit in units]
    done = subprocess.run(
        ["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("plain", "plain"),
        ("", '""'),
        ('a"b', '"a\\"b"'),
        ("$HOME %h", '"$$HOME %%h"'),
        ("back\\slash", '"back\\\\slash"'),
    ],
)
def test_words_reach_the_program_as_they_are(word: str, found: str) -> None:
    assert quote(word) == found


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (replace(TIMED, at=None), r"choose a time \(at\), on_boot or on_shutdown"),
        (replace(TIMED, on_boot=True), "one of the three"),
        (replace(TIMED, targets=()), "at a time needs targets"),
        (replace(TIMED, at=None, on_boot=True), "takes none"),
        (replace(TIMED, name="a/b"), "^'a/b' is not a name"),
        (replace(TIMED, targets=("table:x",)), "^--dsn: .*where table:x is"),
    ],
)
def test_what_does_not_go_together_is_refused(wanted: Add, words: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        schedule.check(wanted)
    assert re.search(words, of_command_line(refused.value))


def test_a_password_never_comes_into_a_unit() -> None:
    with pytest.raises(DsnError) as refused:
        schedule.check(replace(TIMED, targets=("table:x",), dsn="postgresql://me:geheim@db/x"))
    assert "--password-file" in of_command_line(refused.value)
    assert "geheim" not in of_command_line(refused.value)


def test_hotset_must_be_there() -> None:
    with pytest.raises(PrerequisiteMissingError, match="not installed on vm") as lacking:
        schedule.find_program(FakeMachine({"test -x": 1}), None)
    assert "--program" in of_command_line(lacking.value)
    assert schedule.find_program(FakeMachine(), None) == PROGRAM
    with pytest.raises(PrerequisiteMissingError, match="there is no program /opt/h"):
        schedule.find_program(FakeMachine({"test -x": 1}), "/opt/h")
    with pytest.raises(ScheduleError, match="full path"):
        schedule.find_program(FakeMachine(), "hotset")


def test_units_are_written_checked_and_switched_on() -> None:
    machine = FakeMachine()
    units = schedule.units(TIMED, "pg", PROGRAM)
    schedule.install(machine, units, enable=True)
    assert [machine.files[str(unit.path)][0] for unit in units] == [unit.text for unit in units]
    verify, reload_, enable = [
        line for line in machine.commands if "systemd-analyze v" in line or "systemctl" in line
    ]
    assert verify.startswith("systemd-analyze verify /run/hotset/hotset-warmup-pg-timed")
    assert reload_ == "systemctl daemon-reload"
    assert enable == "systemctl enable --now hotset-warmup-pg-timed.timer"
    machine = FakeMachine()
    schedule.install(machine, units, enable=False)
    assert not [line for line in machine.commands if "enable" in line]


def test_what_is_for_the_next_boot_is_not_started_now() -> None:
    for wanted, words in (
        (replace(TIMED, targets=(), at=None, on_boot=True), "enable hotset-warmup-pg-boot.service"),
        (
            replace(TIMED, targets=(), at=None, on_shutdown=True),
            "enable --now hotset-warmup-pg-shutdown.service",
        ),
    ):
        machine = FakeMachine()
        schedule.install(machine, schedule.units(wanted, "pg", PROGRAM), enable=True)
        assert machine.commands[-1] == f"systemctl {words}"


def test_where_systemd_does_not_run_nothing_is_written() -> None:
    """Both units were, and what had been there before was gone."""
    for enable in (True, False):
        machine = FakeMachine(NO_SYSTEMD)
        with pytest.raises(PrerequisiteMissingError, match="systemd does not run on vm"):
            schedule.install(machine, schedule.units(TIMED, "pg", PROGRAM), enable=enable)
        assert machine.files == {}
        assert not [line for line in machine.commands if line.startswith("rm ")]


def test_without_systemd_schedules_are_listed_and_removed_all_the_same() -> None:
    """They are of a time when it ran; neither list nor remove nor the end of the disk worked."""
    for act in (schedules.rows, schedules.last_runs):
        machine = there()
        machine.answers = NO_SYSTEMD | machine.answers
        act(machine, schedules.list_units(machine))
    machine = there()
    machine.answers = NO_SYSTEMD | machine.answers
    assert len(schedules.remove(machine, "pg-timed")) == 2
    assert len(schedules.end_for(machine, "pg")) == 3
    removed = {word for one in machine.calls if one.argv[0] == "rm" for word in one.argv[2:]}
    folder = "/etc/systemd/system"
    timer = "hotset-warmup-pg-timed.timer"
    assert removed >= {f"{folder}/{timer}", f"{folder}/timers.target.wants/{timer}", STAMP}
    down = "multi-user.target.wants/hotset-warmup-pg-shutdown.service"
    assert f"{folder}/{down}" in removed, "or it is enabled once systemd runs again"


def test_a_unit_that_cannot_be_switched_on_is_told() -> None:
    machine = FakeMachine({"systemctl enable": 1})
    with pytest.raises(PrerequisiteMissingError, match=r"pg-timed.timer: written, but `systemctl"):
        schedule.install(machine, schedule.units(TIMED, "pg", PROGRAM), enable=True)


def test_a_unit_that_systemd_faults_changes_nothing() -> None:
    earlier = "/etc/systemd/system/hotset-warmup-pg-timed.service"
    machine = FakeMachine({"systemd-analyze verify": 1, "ls /etc/systemd": f"{earlier}\n"})
    with pytest.raises(ScheduleError, match="systemd rejects"):
        schedule.install(machine, schedule.units(TIMED, "pg", PROGRAM), enable=True)
    assert not [line for line in machine.commands if "systemctl" in line or earlier in line]
    assert not [path for path in machine.files if path.startswith("/etc/")]
    with pytest.raises(ScheduleError, match="systemd refuses 'Mon 25:00'"):
        schedule.check_calendar(FakeMachine({"systemd-analyze calendar": 1}), "Mon 25:00")


def there() -> FakeMachine:
    """A machine with a timed schedule and one at shutdown."""
    down = replace(TIMED, targets=(), at=None, on_shutdown=True)
    units = [*schedule.units(TIMED, "pg", PROGRAM), *schedule.units(down, "pg", PROGRAM)]
    texts = {f"cat {unit.path}": unit.text for unit in units}
    names = "\n".join(["ssh.service", *(unit.name for unit in units)])
    return FakeMachine({"ls /etc/systemd/system": names, **texts})


SHOWN = """\
Id=hotset-warmup-pg-shutdown.service
ActiveState=active
Result=success
ExecMainExitTimestampMonotonic=17
ExecMainExitTimestamp=Mon 2026-11-23 06:00:00 UTC

Id=hotset-warmup-pg-timed.service
ActiveState={state}
Result={result}
ExecMainExitTimestampMonotonic={ended}
ExecMainExitTimestamp={at}
"""
AT = "Mon 2026-11-23 07:00:09 UTC"


@pytest.mark.parametrize(
    ("state", "result", "at", "told"),
    [
        ("inactive", "success", "", ("", "")),
        ("activating", "success", AT, ("running", "")),
        ("inactive", "success", AT, ("done", AT)),
        ("failed", "exit-code", AT, ("failed", AT)),
        ("failed", "resources", "", ("failed", "")),
    ],
)
def test_schedules_tell_how_their_last_run_came_out(
    state: str, result: str, at: str, told: tuple[str, str]
) -> None:
    machine = there()
    shown = SHOWN.format(state=state, result=result, at=at, ended=18 if at else 0)
    saved = "2026-11-22 23:05:10.123456789 +0100\n"
    machine.answers |= {"systemctl show": shown, "stat": saved}
    down, timed = schedules.rows(machine, schedules.list_units(machine))
    assert (timed.last, timed.ended) == told
    # Of the snapshot, not of the command that is run at the start.
    assert (down.last, down.ended) == ("done", "2026-11-22 23:05:10 +0100")
    machine.answers |= {"systemctl show": 1, "stat": 1}
    assert {one.last for one in schedules.rows(machine, schedules.list_units(machine))} == {""}


def test_schedules_are_listed_and_removed() -> None:
    rows = schedules.rows(there(), schedules.list_units(there()))
    assert [(one.name, one.when) for one in rows] == [
        ("pg-shutdown", "shutdown"),
        ("pg-timed", "Mon..Fri 07:00"),
    ]
    assert rows[1].command.startswith(f"{PROGRAM} warmup run /srv/pg/base")
    machine = there()
    gone = ["hotset-warmup-pg-timed.timer", "hotset-warmup-pg-timed.service"]
    assert schedules.remove(machine, "pg-timed") == gone
    reloaded, stopped, forgotten = [
        line.removeprefix("systemctl ") for line in machine.commands if "systemctl" in line
    ]
    assert reloaded == "daemon-reload"
    assert (stopped, forgotten) == (f"stop {' '.join(gone)}", f"reset-failed {' '.join(gone)}")
    with pytest.raises(ScheduleError, match="there are: pg-shutdown, pg-timed"):
        schedules.remove(there(), "nightly")


STAMP = "/var/lib/systemd/timers/stamp-hotset-warmup-pg-timed.timer"


def test_a_schedule_of_a_name_that_is_taken_begins_anew() -> None:
    """Nothing is left of when the other one ran: systemd would think that a time was missed."""
    folder = "/etc/systemd/system/hotset-warmup-pg-timed"
    machine = FakeMachine({f"ls {folder}": f"{folder}.service\n{folder}.timer\n"})
    schedule.install(machine, schedule.units(TIMED, "pg", PROGRAM), enable=True)
    (removed,) = [line for line in machine.commands if line.startswith("rm -f ")]
    wanted = {one for one in removed.split()[2:] if ".wants/" in one}
    assert {*removed.split()[2:]} - wanted == {f"{folder}.timer", f"{folder}.service", STAMP}
    stopped = "systemctl stop hotset-warmup-pg-timed.timer hotset-warmup-pg-timed.service"
    (checked,) = [line for line in machine.commands if line.startswith("systemd-analyze verify")]
    order = [machine.commands.index(line) for line in (checked, removed, stopped)]
    assert order == sorted(order)
    assert machine.commands[-1] == "systemctl enable --now hotset-warmup-pg-timed.timer"
    assert f"{folder}.timer" in machine.files


@pytest.mark.parametrize(
    ("operation", "asked"),
    [("detach", {"disk": "data"}), ("destroy", {"flash_name": "data", "yes": True})],
)
def test_the_schedules_of_a_disk_end_with_it(
    operation: str, asked: dict[str, str | bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would fail from then on, or warm up the next disk of its name."""
    plain = {"name": "dm-3", "type": "dm", "size": 8 << 20, "mountpoints": []}
    answers = {"lsblk": json.dumps({"blockdevices": [plain]}), "wipefs --json": ""}
    machine = server(**{"dmsetup status": LINE.replace(" 12 33 ", " 12 0 "), **answers})
    flash_devices.save(machine, FLASH)
    boot = replace(TIMED, targets=(), at=None, on_boot=True)
    down = replace(boot, on_boot=False, on_shutdown=True)
    named = replace(TIMED, name="nightly")
    of_this = [one for each in (named, boot, down) for one in schedule.units(each, "data", PROGRAM)]
    others = [*schedule.units(TIMED, "data2", PROGRAM), Unit("ssh.service", "")]
    units = [*of_this, *others]
    machine.answers |= {f"cat {unit.path}": unit.text for unit in units}
    machine.answers["ls /etc/systemd/system"] = "\n".join(unit.name for unit in units)

    monkeypatch.setattr(connect, "open_machine", lambda *_: nullcontext(machine))
    monkeypatch.setattr(locks, "held", lambda *_: nullcontext(machine))
    said: list[str] = []
    context = Context(Reporter(True), said.append)
    found = table.find(f"tier {operation}")
    found.function(found.request(**asked), context)
    (removed,) = [line for line in machine.commands if "rm -f /etc/systemd/system/hotset-w" in line]
    stamps = {f"stamp-{one.name}" for one in of_this if one.name.endswith(".timer")}
    assert {Path(path).name for path in removed.split()[2:]} == {
        *(one.name for one in of_this),
        *stamps,
    }
    assert stamps
    assert any(line.endswith("rm -f /var/lib/hotset/data.snapshot") for line in machine.commands)

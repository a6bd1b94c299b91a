"""`hotset top`: what its lines say, and the whole of it in a real terminal over a real tier."""

from __future__ import annotations

import doctest
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hotset.cachelayer import lab as labs
from hotset.cachelayer.ground import EmulatedGround
from hotset.cachelayer.local import Local
from hotset.cachelayer.takedown import Takedown, exclusive
from hotset.cachelayer.tier import Counters, TierSpec
from hotset.cachelayer.units import Blocks, Bytes
from hotset.harness import by_table, live, top, top_view, watch
from hotset.harness.archive import Archive
from hotset.harness.engines.engine import Counter, FileIo, Unavailable, Wait
from hotset.harness.engines.report import Reading
from hotset.harness.service import jobs
from hotset.harness.top import DiskView, Load, Picture, Seen
from tests import documents
from tests.cli_server import CommandLine
from tests.postgres_cluster import Cluster
from tests.silent_server import silent_server

HOTSET = Path(sys.executable).with_name("hotset")
MIB = 2**20
BLOCK = Bytes(65536)
LOAD = Load(812.0, 1200.0, 2.1, 300.0, None, (("IO: DataFileRead", 96.0),), ())


def counters(hits: int, misses: int, dirty: int = 4) -> Counters:
    return Counters(hits, misses, 10, 0, 5, 1, Blocks(dirty), Blocks(32), Blocks(64))


def disk(name: str, hits: int, misses: int, dirty: int = 4) -> DiskView:
    """A disk that was asked so often in its last second; 50 of 100 reads hit before that."""
    now = counters(50 + hits, 50 + misses, dirty)
    line = watch.line(counters(50, 50), now, 0.0, 1.0, 32, BLOCK)
    ratios = (0.5, None, line.hit_ratio)
    return DiskView(Seen(name, "dm-cache", "writeback, oltp", BLOCK, now), line, ratios)


def shown(*disks: DiskView, order: top_view.Order = "name", width: int = 100, height: int = 24,
          load: Load | None = None, running: tuple[str, ...] = ()) -> list[str]:  # fmt: skip
    picture = Picture(0.0, disks, load, (100.0, 200.0), running)
    return top_view.screen(picture, order, "local", width, height, False).plain.splitlines()


def test_a_disk_the_database_and_a_job() -> None:
    lines = shown(disk("shop", 90, 10), load=LOAD, running=("tpcc run  12.0 s, 800 tps",))
    text = "\n".join(lines)
    assert "shop  dm-cache, writeback, oltp  reads 100/s  writes 0/s" in lines[2]
    assert lines[3].startswith("hits       90.0 % ▕██████████████▍ ▏ now  71.4 % since start  ▄ ")
    assert "▕████████        ▏ of 4.0 MiB  dirty 256.0 KiB ▕█               ▏" in lines[4]
    assert "transactions 812/s  ▄█" in text
    assert "I/O  reads 1,200/s at 2.1 ms  writes 300/s" in text
    assert "waits  IO: DataFileRead 96 ms/s" in text
    assert "running  tpcc run  12.0 s, 800 tps" in text
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("name", ["a", "b", "c"]),
        ("hit ratio", ["b", "a", "c"]),
        ("requests", ["a", "b", "c"]),
        ("dirty", ["b", "a", "c"]),
    ],
)
def test_the_disks_in_order(order: top_view.Order, names: list[str]) -> None:
    silent = DiskView(Seen("c", "bcache", "writeback, oltp", BLOCK, None), None, ())
    lines = shown(silent, disk("a", 99, 1, 7), disk("b", 5, 5, 9), order=order)
    assert [line.split()[0] for line in lines[2::4]][:3] == names
    assert any("no counters" in line for line in lines)


@pytest.mark.parametrize(("width", "height"), [(40, 8), (60, 12), (200, 50)])
def test_it_fits_every_window(width: int, height: int) -> None:
    disks = [disk(f"disk{number}", number, 5) for number in range(8)]
    lines = shown(*disks, width=width, height=height, load=LOAD)
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert any("more: make the window higher" in line[:60] for line in lines) == (height < 40)


def test_no_disk_says_how_to_make_one() -> None:
    assert "hotset tier create" in "\n".join(shown())


def test_rates_of_a_server_and_what_it_does_not_show() -> None:
    files = [
        FileIo("relation", "data", 100, 0, 250.0, 40, 0, 20.0),
        FileIo("temp", "temp", 0, 0, 0.0, 0, 0, 0.0),
    ]
    counted = [Counter("commits", 600.0, False), Counter("deadlocks", 0.0, False)]
    load = top.load_of(Reading(files, [Wait("a", 1, 4.0), Wait("b", 9, 8.0)], counted), 2.0)
    assert load == Load(300.0, 50.0, 2.5, 20.0, 0.5, (("b", 4.0), ("a", 2.0)), ())
    dark = top.load_of(Reading(*(Unavailable("not allowed") for _ in range(3))), 1.0)
    assert (dark.commits, dark.reads, dark.missing[0]) == (None, None, "not allowed")


def test_a_running_job_is_shown_until_it_ends() -> None:
    with silent_server() as dsn:
        job = jobs.start(("tpcc", "check"), {"dsn": dsn})
        assert [line.partition("  ")[0] for line in top.running()] == ["tpcc check"]
        deadline = time.monotonic() + 20
        while jobs.find(job.id).running:
            jobs.cancel(job.id)
            assert time.monotonic() < deadline, "the job does not end"
            time.sleep(0.1)
    assert top.running() == ()


def test_an_experiment_that_runs_here_is_shown() -> None:
    phase = {"name": "baseline 2", "state": "done", "seconds": 9}
    document = documents.changed(documents.interrupted(), phases=[phase])
    archive = Archive.default()
    archive.new("demo", document.started_at)
    archive.save(document)
    folder = labs.lab_folder()
    with exclusive(folder):
        Takedown(folder, Local()).owner("experiment demo")
        (line,) = top.running()
    nopm = document.arms[0].repeats[-1].nopm
    said = f"run {document.run}: baseline 2 done, baseline {nopm:,.0f} NOPM"
    assert line == f"experiment demo  {said}"


def test_it_refuses_what_is_no_terminal(hotset: CommandLine) -> None:
    done = hotset("top")
    assert done.code == 2
    assert "hotset tier watch" in done.err
    assert done.out == ""


def test_doctests() -> None:
    for module in (by_table, live, top_view):
        assert doctest.testmod(module).failed == 0


class Terminal:
    """A program in a pseudo-terminal, and what its screen shows."""

    def __init__(self, argv: list[str], environment: Mapping[str, str], columns: int) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, dict(environment))  # noqa: S606 - that is the point
        self.columns = columns
        self.resize(columns)
        self.written = ""

    def resize(self, columns: int) -> None:
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        self.columns = columns

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def screen(self) -> str:
        """The last whole frame: each begins at the screen's home."""
        frames = self.written.split("\x1b[H")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frames[-1]).replace("\r", "")

    def until(self, condition: Callable[[str], object], limit_s: float = 15) -> str:
        deadline = time.monotonic() + limit_s
        while not condition(self.screen()):
            assert time.monotonic() < deadline, f"waited too long for it: {self.screen()}"
            self._read()
        return self.screen()

    def end(self, signal_: int) -> int:
        """Its exit code."""
        os.kill(self.pid, signal_)
        deadline = time.monotonic() + 10
        while (found := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline, "it does not end"
            self._read()
        self._read()
        return os.waitstatus_to_exitcode(found[1])

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.master)[3] & termios.ECHO)

    def _read(self) -> None:
        ready, _, _ = select.select([self.master], [], [], 0.05)
        if ready:
            try:
                self.written += os.read(self.master, 65536).decode(errors="replace")
            except OSError:  # EIO: nobody has the other side open any more
                time.sleep(0.05)


@contextmanager
def emulated_tier() -> Iterator[Path]:
    """An emulated tier where the lab has its own; the accelerated disk."""
    folder, local = labs.lab_folder(), Local()
    takedown = Takedown(folder, local)
    takedown.owner("test")
    ground = EmulatedGround(local, local, "pcie-flash-2014", folder)
    sizes = (Bytes(number * MIB) for number in (5, 64, 16))
    try:
        origin = ground.slow_disk("nas-2014", Bytes(128 * MIB), 1)
        spec = TierSpec("writeback", "smq", BLOCK, *sizes)
        yield Path(ground.tier(spec, origin, takedown).prepare())
    finally:
        takedown.undo()


@pytest.mark.lab
@pytest.mark.database
def test_a_live_screen_in_a_terminal(cluster: Cluster) -> None:
    base = cluster.database()
    dsn = f"host={base.host} port={base.port} user={base.user} dbname={base.dbname}"
    loud = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment = {**loud, "TERM": "xterm-256color", "HOTSET_PASSWORD": base.password}
    with emulated_tier() as device, closing(base.session()) as session, device.open("rb") as disk_:
        terminal = Terminal([str(HOTSET), "top", "0.3", "--dsn", dsn], environment, 100)

        def busy(screen: str) -> bool:
            """Keeps disk and database at work until they are on the screen."""
            os.posix_fadvise(disk_.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.pread(disk_.fileno(), 4 * MIB, 0)
            session.script("SELECT 1")
            found = re.search(r"reads ([\d,]+)/s.*transactions ([\d,]+)/s", screen, re.DOTALL)
            return bool(found and found[1] != "0" and found[2] != "0")

        first = terminal.until(busy)
        assert "lab  emulated, writeback, smq" in first
        assert re.search(r"hits +\d+\.\d % ▕.*▏ now +\d+\.\d % since start", first)
        assert re.search(r"used .* of 64\.0 MiB +dirty", first)
        assert "\x1b[?1049h" in terminal.written, "the screen before it is kept"
        assert not terminal.echoes()
        terminal.press("s")
        terminal.until(lambda screen: "by hit ratio" in screen)
        terminal.press("?")
        terminal.until(lambda screen: "this help, and back" in screen)
        terminal.press("?")
        terminal.resize(60)
        narrow = terminal.until(
            lambda screen: "lab" in screen and max(map(len, screen.splitlines())) == 60
        )
        assert "used" in narrow
        assert terminal.end(signal.SIGINT) == 0
        assert terminal.written.rstrip().endswith("\x1b[?1049l"), "and shown again"
        assert "Traceback" not in terminal.written
        assert terminal.echoes()
        assert base.password not in terminal.written

"""TPC-C drivers side by side on one PostgreSQL: NOPM and client CPU per transaction, as ratios.

    bench_drivers.py [--warehouses 4] [--users 4] [--repeats 3] [--seconds 20]

hotset's own driver, go-tpc (built here from the Go module proxy, where `go` is installed) and
HammerDB (where HAMMERDB_HOME names a release). All run against one private server with everything
in memory, each on a database that it loaded itself, taking turns. All are measured alike and from
outside, over the same seconds: new orders and transactions by the server's own count, CPU (user and
system) of the driver and every process it started. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hotset.core.environment import PASSWORD
from hotset.databases.postgres.client import PostgresDatabase
from hotset.reports.analysis.stats import ratio_with_interval
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import Arm
from hotset.reports.model.windows import Repeat

GO_TPC = "github.com/pingcap/go-tpc"
GO_TPC_VERSION = "v1.0.12"
USER = "bench"
WARM_S = 4.0
START_LIMIT_S = 60.0
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder made by tempfile in it
ROOM_BYTES = 12 << 30
SERVER = {
    "shared_buffers": "2GB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "max_connections": "200",
}


@dataclass(frozen=True)
class Driver:
    """One driver: how it loads a database of its name, and how it runs for so many seconds."""

    name: str
    load: list[str]
    run: Callable[[float], list[str]]


@dataclass(frozen=True)
class Sample:
    """Counters at one instant."""

    at: float
    orders: int
    transactions: int
    cpu_s: float


@dataclass(frozen=True)
class Measured:
    """What lies between two samples."""

    nopm: float
    cpu_us: float


@contextmanager
def server(binaries: Path, settings: Mapping[str, str] = SERVER) -> Iterator[int]:
    """A private cluster on loopback, open to whoever is on this computer; yields its port."""
    with tempfile.TemporaryDirectory(prefix="hotset-bench-", dir=home()) as name:
        folder = Path(name)
        as_other = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if as_other:
            shutil.chown(folder, "postgres")
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        data = str(folder / "data")
        run_quietly(
            [*as_other, str(binaries / "initdb"), "-D", data, "-U", USER, "-A", "trust", "-N"]
        )
        given = {
            **settings,
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": folder,
        }
        options = " ".join(f"-c {key}={value}" for key, value in given.items())
        control = [*as_other, str(binaries / "pg_ctl"), "-D", data, "-w"]
        run_quietly([*control, "-l", str(folder / "log"), "-o", options, "start"])
        try:
            yield port
        finally:
            run_quietly([*control, "-m", "immediate", "stop"])


def home() -> Path:
    """The folder of the server's files: in memory where there is room (databases, their copies and
    4 GB of log), as even without fsync the kernel writes files back to their disk, and a window
    then shares its time with what the one before it left to be written."""
    available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text("utf-8"))
    free = int(available[1]) << 10 if available else 0
    if MEMORY.is_dir() and min(free, shutil.disk_usage(MEMORY).free) >= ROOM_BYTES:
        return MEMORY
    return Path(tempfile.gettempdir())


def files_in() -> str:
    """Where the server's files lie, as the results say it."""
    return "files in memory" if home() == MEMORY else f"files on a disk, in {home()}"


def newest_server() -> Path:
    """The programs of the newest PostgreSQL server here."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
    )
    if not installed:
        sys.exit("bench: no PostgreSQL server is installed: apt install postgresql")
    return installed[-1]


def run_quietly(argv: list[str], cwd: Path | None = None) -> None:
    """Run to the end; what it said is shown only when it fails."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(argv)} ended with {done.returncode}:\n{done.stdout[-2000:]}")


def drivers(port: int, arguments: argparse.Namespace, folder: Path) -> list[Driver]:
    """Those that are there."""
    found = [hotset("hotset", port, arguments, [])]
    if shutil.which("go"):
        found.append(go_tpc(build_go_tpc(folder), port, arguments))
    else:
        say("go is not installed: go-tpc is left out")
    if os.environ.get("HAMMERDB_HOME"):
        # The server trusts everybody, but HammerDB takes no empty password.
        os.environ[PASSWORD] = USER
        found.append(hotset("hammerdb", port, arguments, ["--driver", "hammerdb"], step_s=60))
    else:
        say("HAMMERDB_HOME is not set: HammerDB is left out")
    return found


def hotset(
    name: str, port: int, arguments: argparse.Namespace, extra: list[str], step_s: int = 1
) -> Driver:
    """Our own command, with its own driver or another's, which may run for whole steps only."""
    program = str(Path(sys.executable).parent / "hotset")
    dsn = f"host=127.0.0.1 port={port} user={USER} dbname={name}"
    common = ["--dsn", dsn, "--warehouses", str(arguments.warehouses), "--quiet", *extra]

    def run(seconds: float) -> list[str]:
        whole_s = math.ceil(seconds / step_s) * step_s
        return [
            program,
            "tpcc",
            "run",
            *common,
            "--users",
            str(arguments.users),
            "--rampup",
            "0",
            "--duration",
            str(whole_s),
            "--no-check",
            "--format",
            "json",
        ]

    return Driver(name, [program, "tpcc", "build", *common], run)


def build_go_tpc(folder: Path) -> Path:
    """The program, from a module of our own that requires it."""
    say(f"building {GO_TPC} {GO_TPC_VERSION}")
    run_quietly(["go", "mod", "init", "bench"], folder)
    run_quietly(["go", "get", f"{GO_TPC}/cmd/go-tpc@{GO_TPC_VERSION}"], folder)
    run_quietly(["go", "build", "-o", "go-tpc", f"{GO_TPC}/cmd/go-tpc"], folder)
    return folder / "go-tpc"


def go_tpc(program: Path, port: int, arguments: argparse.Namespace) -> Driver:
    """Single statements from the client, prepared: it has no stored procedures."""
    common = [
        "-d",
        "postgres",
        "-H",
        "127.0.0.1",
        "-P",
        str(port),
        "-U",
        USER,
        "-D",
        "go_tpc",
        "--conn-params",
        "sslmode=disable",
        "--warehouses",
        str(arguments.warehouses),
        "-T",
        str(arguments.users),
    ]

    def run(seconds: float) -> list[str]:
        return [str(program), "tpcc", "run", *common, "--time", f"{seconds:g}s"]

    return Driver("go_tpc", [str(program), "tpcc", "prepare", *common, "--no-check"], run)


def measure(driver: Driver, port: int, seconds: float) -> Measured:
    """Run a driver, look at it for so many seconds in its middle, and end it."""
    database = PostgresDatabase("127.0.0.1", port, USER, "", driver.name)
    process = subprocess.Popen(
        driver.run(WARM_S + seconds + 30),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until_it_works(database, process)
        time.sleep(WARM_S)
        first = sample(database, process.pid)
        time.sleep(seconds)
        last = sample(database, process.pid)
        if process.poll() is not None:
            sys.exit(f"bench: {driver.name} ended early, with {process.returncode}")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    transactions = last.transactions - first.transactions
    minutes = (last.at - first.at) / 60
    return Measured(
        nopm=(last.orders - first.orders) / minutes,
        cpu_us=(last.cpu_s - first.cpu_s) / transactions * 1e6,
    )


def until_it_works(database: PostgresDatabase, process: subprocess.Popen[bytes]) -> None:
    """A driver's start-up is not what is compared: wait for its first hundred orders."""
    begun = sample(database, process.pid)
    while sample(database, process.pid).orders < begun.orders + 100:
        if process.poll() is not None or time.monotonic() > begun.at + START_LIMIT_S:
            sys.exit(f"bench: {process.args!r} did not start to work")
        time.sleep(0.2)


def sample(database: PostgresDatabase, pid: int) -> Sample:
    """The server's counts and the driver's CPU. Server sessions publish theirs once a second."""
    with closing(database.session()) as session:
        at = time.monotonic()
        ((orders, transactions),) = session.query(
            "SELECT (SELECT sum(d_next_o_id) FROM district)::bigint, xact_commit + xact_rollback"
            " FROM pg_stat_database WHERE datname = current_database()"
        )
    return Sample(at, int(str(orders)), int(str(transactions)), cpu_s(pid))


def cpu_s(root: int) -> float:
    """User and system seconds of a process and all below it (proc(5))."""
    parents, ticks = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = file.read_text().rsplit(")", 1)[1].split()
            pid = int(file.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])

    def below(pid: int) -> bool:
        return pid == root or (pid in parents and below(parents[pid]))

    return sum(ticks[pid] for pid in ticks if below(pid)) / os.sysconf("SC_CLK_TCK")


def ratio(ours: list[float], theirs: list[float]) -> str:
    """Ratio of means with its interval (reports/stats.py)."""
    value, low, high = ratio_with_interval(arm("accelerated", ours), arm("baseline", theirs))
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def arm(name: ArmName, figures: list[float]) -> Arm:
    """Figures as the repeats of an arm."""
    repeats = [
        Repeat(
            repeat=number,
            nopm=figure,
            tpm=0,
            failed=0,
            retries=0,
            server_cpu=0,
            server_iowait=0,
            rampup_s=0,
            duration_s=1,
        )
        for number, figure in enumerate(figures, 1)
    ]
    return Arm(name=name, repeats=tuple(repeats))


def say(text: str) -> None:
    """To standard error."""
    sys.stderr.write(f"bench: {text}\n")


def report(found: dict[str, list[Measured]]) -> None:
    """Medians, and hotset's ratios to each other driver."""
    ours = found["hotset"]
    print(f"{'driver':10} {'NOPM':>9} {'client µs/tx':>13}  hotset's NOPM, CPU as a ratio (95 %)")
    for name, measured in found.items():
        nopm = [one.nopm for one in measured]
        cpu_us = [one.cpu_us for one in measured]
        line = f"{name:10} {statistics.median(nopm):9,.0f} {statistics.median(cpu_us):13.1f}"
        if name != "hotset":
            line += f"  {ratio([one.nopm for one in ours], nopm)},"
            line += f" {ratio([one.cpu_us for one in ours], cpu_us)}"
        print(line)


def main() -> None:
    """Load once per driver, then take turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, default in (("warehouses", 4), ("users", 4), ("repeats", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server goes with us
    binaries = newest_server()
    with tempfile.TemporaryDirectory(prefix="hotset-go-") as name, server(binaries) as port:
        chosen = drivers(port, arguments, Path(name))
        for driver in chosen:
            say(f"{driver.name}: loading {arguments.warehouses} warehouses")
            with closing(PostgresDatabase("127.0.0.1", port, USER, "", "postgres").session()) as s:
                s.script(f"CREATE DATABASE {driver.name}")
            run_quietly(driver.load)
        found: dict[str, list[Measured]] = {driver.name: [] for driver in chosen}
        for repeat in range(arguments.repeats):
            for driver in chosen if repeat % 2 == 0 else chosen[::-1]:
                one = measure(driver, port, arguments.seconds)
                found[driver.name].append(one)
                load = os.getloadavg()[0]
                say(f"{driver.name}: {one.nopm:,.0f} NOPM, {one.cpu_us:.1f} µs, load {load:.1f}")
    report(found)


if __name__ == "__main__":
    main()

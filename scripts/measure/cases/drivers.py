"""TPC-C drivers side by side on one PostgreSQL: NOPM and client CPU per transaction, as ratios.

hotset's own driver, go-tpc (built here from the Go module proxy, where `go` is installed) and
HammerDB (where HAMMERDB_HOME names a release). All run against one private server with everything
in memory, each on a database that it loaded itself, taking turns. All are measured alike and from
outside, over the same seconds: new orders and transactions by the server's own count, CPU (user and
system) of the driver and every process it started.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from hotset.core.environment import PASSWORD
from hotset.databases.postgres.product import PostgresDatabase
from hotset.tpcc.schema import SCHEMA

from .. import postgres
from ..page import Page, table
from ..paired import ratio, say, turns
from ..programs import HOTSET, run, tree_cpu_s

GO_TPC = "github.com/pingcap/go-tpc"
GO_TPC_VERSION = "v1.0.12"
WARM_S = 4.0
START_LIMIT_S = 60.0


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
class Speed:
    """Speed between two samples."""

    nopm: float
    cpu_us: float

    def __str__(self) -> str:
        return f"{self.nopm:,.0f} NOPM, {self.cpu_us:.1f} µs, load {os.getloadavg()[0]:.1f}"


def measure(options: argparse.Namespace) -> Page:
    """Load once per driver, then take turns."""
    with tempfile.TemporaryDirectory(prefix="hotset-go-") as folder, postgres.server() as port:
        chosen = list(drivers(port, options, Path(folder)))
        for driver in chosen:
            say(f"{driver.name}: loading {options.warehouses} warehouses")
            postgres.create(port, driver.name)
            run(driver.load)
        sides = {each.name: partial(speed, each, port, options.seconds) for each in chosen}
        results = turns(sides, options.rounds)
    rows, ours = [], columns(results["hotset"])
    for name, speeds in results.items():
        nopm, cpu_us = columns(speeds)
        row = [name, f"{statistics.median(nopm):,.0f}", f"{statistics.median(cpu_us):.1f}"]
        if name != "hotset":
            row += [f"{ratio(ours[0], nopm):.2f}", f"{ratio(ours[1], cpu_us):.2f}"]
        rows.append([*row, "", ""][:5])
    return Page(
        "drivers",
        "TPC-C drivers side by side",
        "Medians, and hotset's NOPM and CPU time by those of the others (95 % interval).",
        f"{options.users} users, {options.warehouses} warehouses, {postgres.files_in()}, turns of"
        f" {options.seconds:g} s.",
        table(("driver", "NOPM", "client µs/tx", "hotset's NOPM", "hotset's CPU"), rows),
        {name: [asdict(each) for each in speeds] for name, speeds in results.items()},
    )


def columns(speeds: list[Speed]) -> tuple[list[float], list[float]]:
    return [each.nopm for each in speeds], [each.cpu_us for each in speeds]


def drivers(port: int, options: argparse.Namespace, folder: Path) -> Iterator[Driver]:
    """Yield the drivers that this computer has."""
    yield hotset("hotset", port, options)
    if shutil.which("go"):
        yield go_tpc(build_go_tpc(folder), port, options)
    else:
        say("go is not installed: go-tpc is left out")
    if os.environ.get("HAMMERDB_HOME"):
        # The server trusts everybody, but HammerDB takes no empty password.
        os.environ[PASSWORD] = postgres.USER
        yield hotset("hammerdb", port, options, "--driver=hammerdb", step_s=60)
    else:
        say("HAMMERDB_HOME is not set: HammerDB is left out")


def hotset(
    name: str, port: int, options: argparse.Namespace, *more: str, step_s: int = 1
) -> Driver:
    """Our own command, with its own driver or another's, which may run for whole steps only."""
    common = [*postgres.dsn(port, name), f"--warehouses={options.warehouses}", "--quiet", *more]

    def for_s(seconds: float) -> list[str]:
        whole_s = math.ceil(seconds / step_s) * step_s
        words = ["--rampup=0", f"--duration={whole_s}", "--no-check", "--format=json"]
        return [HOTSET, "tpcc", "run", *common, f"--users={options.users}", *words]

    return Driver(name, [HOTSET, "tpcc", "build", *common], for_s)


def build_go_tpc(folder: Path) -> Path:
    """The program, from a module of our own that requires it."""
    say(f"building {GO_TPC} {GO_TPC_VERSION}")
    run(["go", "mod", "init", "bench"], folder)
    run(["go", "get", f"{GO_TPC}/cmd/go-tpc@{GO_TPC_VERSION}"], folder)
    run(["go", "build", "-o", "go-tpc", f"{GO_TPC}/cmd/go-tpc"], folder)
    return folder / "go-tpc"


def go_tpc(program: Path, port: int, options: argparse.Namespace) -> Driver:
    """Single statements from the client, prepared: it has no stored procedures."""
    common = f"-d postgres -H 127.0.0.1 -P {port} -U {postgres.USER} -D go_tpc".split()
    common += ["--conn-params", "sslmode=disable", "-T", str(options.users)]
    common += ["--warehouses", str(options.warehouses)]

    def for_s(seconds: float) -> list[str]:
        return [str(program), "tpcc", "run", *common, "--time", f"{seconds:g}s"]

    return Driver("go_tpc", [str(program), "tpcc", "prepare", *common, "--no-check"], for_s)


def speed(driver: Driver, port: int, seconds: float, _round: int) -> Speed:
    """Run a driver, sample it for so many seconds in its middle, and end it."""
    database = postgres.database(port, driver.name)
    process = subprocess.Popen(
        driver.run(WARM_S + seconds + 30),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for_orders(database, process)
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
    return Speed(
        nopm=(last.orders - first.orders) / minutes,
        cpu_us=(last.cpu_s - first.cpu_s) / transactions * 1e6,
    )


def wait_for_orders(database: PostgresDatabase, process: subprocess.Popen[bytes]) -> None:
    """A driver's start-up is not what is compared: wait for its first hundred orders."""
    first = sample(database, process.pid)
    while sample(database, process.pid).orders < first.orders + 100:
        if process.poll() is not None or time.monotonic() > first.at + START_LIMIT_S:
            sys.exit(f"bench: {process.args!r} did not start to work")
        time.sleep(0.2)


def sample(database: PostgresDatabase, pid: int) -> Sample:
    """The server's counts and the driver's CPU. Server sessions publish theirs once a second."""
    with closing(database.session()) as session:
        # go-tpc's tables and HammerDB's are in no schema of their own.
        session.script(f"SET search_path = {SCHEMA}, public")
        at = time.monotonic()
        ((orders, transactions),) = session.query(
            "SELECT (SELECT sum(d_next_o_id) FROM district)::bigint, xact_commit + xact_rollback"
            " FROM pg_stat_database WHERE datname = current_database()"
        )
    return Sample(at, int(str(orders)), int(str(transactions)), tree_cpu_s(pid))

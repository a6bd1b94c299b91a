"""Cost of watching under TPC-C: the report by table, and the console's overview. As root.

A lab on this computer: TPC-C on a disk that hotset's own engine caches, warmed up. Windows with and
without `report hit-ratio --by table` every ten seconds take turns (ABBA). NOPM of both, and the CPU
time of the reports themselves, their engine's not, as a share of all cores: the second tells small
costs that the first cannot. Then one window with the console and a client that shows its overview:
the console's CPU time, with what it starts, as a share of one core.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import httpx

from hotset.databases import connect
from hotset.experiment.site import live
from hotset.experiment.site.live import Live
from hotset.tpcc import driver
from hotset.tpcc.record import RunOptions

from ..page import Page, table
from ..paired import ratio, say, turns
from ..programs import HOTSET, cpu_s

EVERY_S = 10.0
RAMPUP_S = 5.0
REPORTS_GOAL, CONSOLE_GOAL = 0.005, 0.02
PASSWORD = "who watches what it costs"  # noqa: S105 - of a console that lives for a minute


def measure(options: argparse.Namespace) -> Page:
    """Raise the lab, and measure both."""
    spent = list[float]()
    with lab(options.warehouses) as running_lab:

        def report_s(number: int) -> float:
            with reporting(running_lab, spent):
                return nopm(running_lab, options, number)

        sides = {"without": lambda number: nopm(running_lab, options, number), "with": report_s}
        results = turns(sides, options.rounds, "{:,.0f} NOPM".format)
        share = overview(running_lab, options)
    # One report's share of the time until the next.
    cpu = fmean(spent) / EVERY_S / (os.cpu_count() or 1)
    by_without = ratio(results["with"], results["without"])
    pairs = list(zip(results["without"], results["with"], strict=True))
    rows = [(number, f"{a:,.0f}", f"{b:,.0f}") for number, (a, b) in enumerate(pairs, 1)]
    return Page(
        "watching",
        "What watching costs",
        f"NOPM with a `report hit-ratio --by table` every {EVERY_S:g} s is {by_without.mean:.4f} of"
        f" NOPM without (95 % interval {by_without.low:.4f} to {by_without.high:.4f}; goal:"
        f" {1 - REPORTS_GOAL:g} or more). The reports themselves take {cpu:.2%} of all cores' time."
        f" The console takes {share:.1%} of one core while a client shows its overview (goal: under"
        f" {CONSOLE_GOAL:.0%}).",
        f"TPC-C with {options.users} users and {options.warehouses} warehouses in windows of"
        f" {options.seconds:g} s.",
        table(("round", "NOPM without", "NOPM with"), rows),
        {
            **by_without._asdict(),
            "reports_cpu_share": cpu,
            "console_core_share": share,
            "rounds": pairs,
        },
    )


@contextmanager
def lab(warehouses: int) -> Iterator[Live]:
    """The lab, warm; it is taken down afterwards."""
    up = [HOTSET, "lab", "up", "--machine", "local", "--warehouses", str(warehouses)]
    subprocess.run(up, check=True)
    try:
        running_lab = live.find_live()
        assert running_lab is not None
        server = ["--dsn", running_lab.dsn, "--password-file", running_lab.password_file]
        subprocess.run([HOTSET, "warmup", "run", "database:tpcc", *server], check=True)
        yield running_lab
    finally:
        subprocess.run([HOTSET, "lab", "down"], check=True)


def nopm(running_lab: Live, options: argparse.Namespace, seed: int) -> float:
    """Measure NOPM in one window."""
    password = Path(running_lab.password_file).read_text().strip()
    run = RunOptions(
        users=options.users,
        warehouses=options.warehouses,
        rampup_s=RAMPUP_S,
        duration_s=options.seconds,
        seed=seed,
    )
    return driver.run(connect.database("postgres", running_lab.dsn, password), run).rate


@contextmanager
def reporting(running_lab: Live, spent: list[float]) -> Iterator[None]:
    """A report every so often; ``spent`` takes the CPU seconds of each."""
    words = [
        "--dsn",
        running_lab.dsn,
        "--password-file",
        running_lab.password_file,
        "--format",
        "csv",
    ]
    argv, ended = [HOTSET, "report", "hit-ratio", "--by", "table", *words], threading.Event()
    failed: list[str] = []

    def work() -> None:
        while not ended.wait(EVERY_S):
            with subprocess.Popen(
                argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            ) as process:
                # Of this child and those it waited for, whatever else this process starts.
                message = process.stderr.read().decode() if process.stderr else ""
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                failed.append(message)
            spent.append(seconds(used))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failed:
        sys.exit(f"bench: {failed[0]}")


def seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def overview(running_lab: Live, options: argparse.Namespace) -> float:
    """The console's share of one core while TPC-C runs and a client shows the overview."""
    with console() as (pid, client), client.stream("GET", "/overview/live") as answer:
        samples = (line for line in answer.iter_lines() if line == "event: sample")
        next(samples)  # the machine's connection is made
        load = threading.Thread(target=nopm, args=(running_lab, options, 1))
        load.start()
        time.sleep(RAMPUP_S)
        before, begun = cpu_s(pid), time.monotonic()
        seen = 0
        while time.monotonic() - begun < options.seconds:
            next(samples)
            seen += 1
        share = (cpu_s(pid) - before) / (time.monotonic() - begun)
        load.join()
    say(f"console: {seen} samples in {options.seconds:g} s, {share:.1%} of one core")
    return share


@contextmanager
def console() -> Iterator[tuple[int, httpx.Client]]:
    """A console, by its process and a client that is logged in."""
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as folder:
        password = Path(folder) / "password"
        password.write_text(f"{PASSWORD}\n")
        environment = {**os.environ, "HOTSET_CONSOLE_PASSWORD_FILE": str(password)}
        argv = [HOTSET, "console", "--port", "0"]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stderr is not None
            match = re.search(r"https?://\S+", process.stderr.readline())
            assert match is not None
            try:
                with httpx.Client(base_url=match[0], timeout=30, follow_redirects=True) as client:
                    token = re.search(r'name="csrf" value="([^"]+)"', client.get("/login").text)
                    assert token is not None
                    client.post(
                        "/login", data={"csrf": token[1], "password": PASSWORD, "next": "/"}
                    )
                    yield process.pid, client
            finally:
                process.send_signal(signal.SIGINT)

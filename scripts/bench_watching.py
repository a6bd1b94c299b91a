"""What watching costs under TPC-C: the report by table, and the console's overview. As root.

    bench_watching.py [--rounds 12] [--seconds 30] [--users 8] [--warehouses 4] [--publish FOLDER]

A lab on this computer: TPC-C on a disk that hotset's own engine caches, warmed up. Windows with and
without `report hit-ratio --by table` every ten seconds take turns, the order changing from round to
round (ABBA). NOPM of both, and the CPU time of the reports themselves, their engine's not, as a
share of all cores: the second tells small costs that the first cannot. Then one window with the
console and one who looks at its overview: the console's CPU time, with what it starts, as a share
of one core. Nothing else should run meanwhile.
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

import httpx

from bench_drivers import say
from bench_results import computer, of_pairs, tell
from hotset.databases import connect
from hotset.experiment.site import live
from hotset.experiment.site.live import Live
from hotset.tpcc import driver
from hotset.tpcc.record import RunOptions

HOTSET = str(Path(sys.executable).with_name("hotset"))
EVERY_S = 10.0
RAMPUP_S = 5.0
REPORTS_GOAL, CONSOLE_GOAL = 0.005, 0.02
PASSWORD = "who watches what it costs"  # noqa: S105 - of a console that lives for a minute


def main() -> None:
    """Raise the lab, measure both, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, default in (("rounds", 12), ("users", 8), ("warehouses", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--publish", type=Path)
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds: an interval needs at least 2")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the lab goes with us
    where = computer()
    with lab(arguments.warehouses) as there:
        pairs, cpu = reports(there, arguments)
        share = overview(there, arguments)
    ratio, low, high = of_pairs(pairs)
    rows = "\n".join(f"| {n} | {a:,.0f} | {b:,.0f} |" for n, (a, b) in enumerate(pairs, 1))
    markdown = f"""# What watching costs

NOPM with a `report hit-ratio --by table` every {EVERY_S:g} s is {ratio:.4f} of NOPM without (95 %
interval {low:.4f} to {high:.4f}; goal: {1 - REPORTS_GOAL:g} or more). The reports themselves take
{cpu:.2%} of all cores' time. The console takes {share:.1%} of one core while one looks at its
overview (goal: under {CONSOLE_GOAL:.0%}).

TPC-C with {arguments.users} users and {arguments.warehouses} warehouses in windows of
{arguments.seconds:g} s. {where}. Again: `scripts/bench.sh watching`.

| round | NOPM without | NOPM with |
|---:|---:|---:|
{rows}"""
    data = {"reports_cpu_share": cpu, "ratio": ratio, "low": low, "high": high}
    tell(
        markdown,
        {**data, "console_core_share": share, "rounds": pairs},
        "watching",
        arguments.publish,
    )


@contextmanager
def lab(warehouses: int) -> Iterator[Live]:
    """The lab, warm; it is taken down afterwards."""
    up = [HOTSET, "lab", "up", "--machine", "local", "--warehouses", str(warehouses)]
    subprocess.run(up, check=True)
    try:
        there = live.find_live()
        assert there is not None
        server = ["--dsn", there.dsn, "--password-file", there.password_file]
        subprocess.run([HOTSET, "warmup", "run", "database:tpcc", *server], check=True)
        yield there
    finally:
        subprocess.run([HOTSET, "lab", "down"], check=True)


def nopm(there: Live, arguments: argparse.Namespace, seed: int) -> float:
    """Of one window."""
    password = Path(there.password_file).read_text().strip()
    options = RunOptions(
        users=arguments.users,
        warehouses=arguments.warehouses,
        rampup_s=RAMPUP_S,
        duration_s=arguments.seconds,
        seed=seed,
    )
    return driver.run(connect.database("postgres", there.dsn, password), options).rate


def reports(there: Live, arguments: argparse.Namespace) -> tuple[list[tuple[float, float]], float]:
    """NOPM without and with, and the share of all cores' time that the reports took."""
    pairs, spent = list[tuple[float, float]](), list[float]()
    for number in range(arguments.rounds):
        found = dict[bool, float]()
        for with_it in (number % 2 == 0, number % 2 != 0):
            if not with_it:
                found[False] = nopm(there, arguments, number + 1)
                continue
            with reporting(there, spent):
                found[True] = nopm(there, arguments, number + 1)
        pairs.append((found[False], found[True]))
        say(f"round {number + 1}: {found[False]:,.0f} without, {found[True]:,.0f} with")
    # One report's share of the time until the next.
    return pairs, sum(spent) / len(spent) / EVERY_S / (os.cpu_count() or 1)


@contextmanager
def reporting(there: Live, spent: list[float]) -> Iterator[None]:
    """A report every so often; ``spent`` takes the CPU seconds of each."""
    words = ["--dsn", there.dsn, "--password-file", there.password_file, "--format", "csv"]
    argv, ended = [HOTSET, "report", "hit-ratio", "--by", "table", *words], threading.Event()
    failed: list[str] = []

    def work() -> None:
        while not ended.wait(EVERY_S):
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as one:
                # Of this child and those it waited for, whatever else this process starts.
                said = one.stderr.read().decode() if one.stderr else ""
                _, status, used = os.wait4(one.pid, 0)
                one.returncode = os.waitstatus_to_exitcode(status)
            if one.returncode:
                failed.append(said)
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


def overview(there: Live, arguments: argparse.Namespace) -> float:
    """The console's share of one core while TPC-C runs and one looks at the overview."""
    with console() as (pid, client), client.stream("GET", "/overview/live") as answer:
        samples = (line for line in answer.iter_lines() if line == "event: sample")
        next(samples)  # the machine's connection is made
        load = threading.Thread(target=nopm, args=(there, arguments, 1))
        load.start()
        time.sleep(RAMPUP_S)
        before, begun = cpu_s(pid), time.monotonic()
        seen = 0
        while time.monotonic() - begun < arguments.seconds:
            next(samples)
            seen += 1
        share = (cpu_s(pid) - before) / (time.monotonic() - begun)
        load.join()
    say(f"console: {seen} samples in {arguments.seconds:g} s, {share:.1%} of one core")
    return share


@contextmanager
def console() -> Iterator[tuple[int, httpx.Client]]:
    """A console, by its process and somebody who is logged in."""
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as folder:
        password = Path(folder) / "password"
        password.write_text(f"{PASSWORD}\n")
        environment = {**os.environ, "HOTSET_CONSOLE_PASSWORD_FILE": str(password)}
        argv = [HOTSET, "console", "--port", "0"]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stderr is not None
            found = re.search(r"https?://\S+", process.stderr.readline())
            assert found is not None
            try:
                with httpx.Client(base_url=found[0], timeout=30, follow_redirects=True) as client:
                    token = re.search(r'name="csrf" value="([^"]+)"', client.get("/login").text)
                    assert token is not None
                    client.post(
                        "/login", data={"csrf": token[1], "password": PASSWORD, "next": "/"}
                    )
                    yield process.pid, client
            finally:
                process.send_signal(signal.SIGINT)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process and its children have had (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()

"""What sampling costs: NOPM with and without what a benchmark reads beside its users.

    bench_sampling.py [--rounds 12] [--seconds 20] [--users 4] [--warehouses 4] [--publish FOLDER]

One private PostgreSQL with everything in memory, where a transaction is shortest and sampling costs
the most of it. Windows with and without sampling take turns, the order changing from round to round
(ABBA), since the database grows. With: the users' time ten times a second and the server's
counters, over a connection of their own; CPU, two block devices and one that the engine serves,
once a second. A round is a pair; the interval is that of the mean of the pairs' ratios (Student's t
of their logarithms). Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path, PurePosixPath

from bench_drivers import USER, files_in, newest_server, run_quietly, say, server
from bench_results import computer, of_pairs, tell
from hotset.cachelayer.block.io_counters import KernelDevice, ServedDevice, Source
from hotset.cachelayer.common.units import Bytes
from hotset.cachelayer.hosts.local import Local
from hotset.cachelayer.stats.sampler import Sampler
from hotset.cachelayer.testbed import served_model
from hotset.harness.databases.postgres.client import PostgresDatabase
from hotset.harness.databases.time_use import TimeSampler, readings
from hotset.tpcc import driver
from hotset.tpcc.window.record import RunOptions

RAMPUP_S = 2.0
GOAL = 0.01


@contextmanager
def devices(local: Local) -> Iterator[list[Source]]:
    """Two of this computer's block devices, and one that the engine serves."""
    counted = sorted(Path("/sys/block").glob("*/stat"))[:2]
    found: list[Source] = [KernelDevice(one.parent.name, PurePosixPath(one)) for one in counted]
    if not Path("/dev/fuse").exists():
        say("no /dev/fuse: the engine's device is left out")
        yield found
        return
    with served_model.served(local, "pcie-flash-2014", Bytes(64 * 1024**2)) as device:
        control = PurePosixPath(device.socket)
        yield [*found, ServedDevice.of(local, "flash", control)]


def nopm(
    database: PostgresDatabase, options: RunOptions, local: Local, sampled: list[Source] | None
) -> float:
    """Of one window; the samples are checked to be there."""
    with ExitStack() as stack:
        times = sampler = None
        if sampled is not None:
            sampler = stack.enter_context(Sampler(local, None, sampled))
            times = stack.enter_context(TimeSampler(readings(database)))
        result = driver.run(database, options)
    if times is not None and sampler is not None:
        start, end = result.window_start, result.window_end
        seen = times.window(start, end), times.io_window(start, end)
        counted = sampler.window(start, end).devices
        if None in seen or len(counted) != len(sampled or ()):
            sys.exit(f"bench: not everything was sampled: {times.missing} {seen} {counted}")
    return result.nopm


def main() -> None:
    """Load, take turns, and tell the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, default in (("rounds", 12), ("users", 4), ("warehouses", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--publish", type=Path)
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds: an interval needs at least 2")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server goes with us
    local, where = Local(), computer()
    pairs: list[tuple[float, float]] = []
    with server(newest_server()) as port, devices(local) as sampled:
        database = PostgresDatabase("127.0.0.1", port, USER, "", "bench")
        with closing(PostgresDatabase("127.0.0.1", port, USER, "", "postgres").session()) as s:
            s.script("CREATE DATABASE bench")
        dsn = f"host=127.0.0.1 port={port} user={USER} dbname=bench"
        program = str(Path(sys.executable).parent / "hotset")
        build = ["tpcc", "build", "--dsn", dsn, "--warehouses", str(arguments.warehouses)]
        run_quietly([program, *build, "--quiet"])
        for number in range(arguments.rounds):
            found: dict[bool, float] = {}
            for with_it in (number % 2 == 0, number % 2 != 0):
                options = RunOptions(
                    users=arguments.users,
                    warehouses=arguments.warehouses,
                    rampup_s=RAMPUP_S,
                    duration_s=arguments.seconds,
                    seed=number + 1,
                )
                found[with_it] = nopm(database, options, local, sampled if with_it else None)
            pairs.append((found[False], found[True]))
            say(
                f"round {number + 1}: {found[False]:,.0f} without, {found[True]:,.0f} with"
                f" ({found[True] / found[False]:.3f}), load {os.getloadavg()[0]:.1f}"
            )
    tell(*report(pairs, arguments, where), "sampling", arguments.publish)


def report(
    pairs: list[tuple[float, float]], arguments: argparse.Namespace, where: str
) -> tuple[str, dict[str, object]]:
    """As Markdown, and as numbers."""
    ratio, low, high = of_pairs(pairs)
    if low > 1 - GOAL:
        verdict = f"under {GOAL:.0%}, as it should be"
    elif high < 1 - GOAL:
        verdict = f"more than the {GOAL:.0%} that it should be"
    else:
        verdict = f"whether it is under {GOAL:.0%} the interval does not tell: measure longer"
    rows = "\n".join(
        f"| {number} | {without:,.0f} | {with_it:,.0f} | {with_it / without:.3f} |"
        for number, (without, with_it) in enumerate(pairs, 1)
    )
    what = (
        f"{arguments.users} users, {arguments.warehouses} warehouses, {files_in()}, windows of"
        f" {arguments.seconds:g} s that take turns"
    )
    markdown = f"""# What sampling costs

NOPM with sampling is **{ratio:.4f}** of NOPM without (95 % interval {low:.4f} to {high:.4f}): it
costs {1 - ratio:.2%}; {verdict}.

Sampled: the users' time ten times a second and the server's counters, CPU and three devices once a
second. {what}. {where}. Again: `scripts/bench.sh sampling`.

| round | NOPM without | NOPM with | ratio |
|---:|---:|---:|---:|
{rows}"""
    data: dict[str, object] = {
        "ratio": ratio,
        "low": low,
        "high": high,
        "rounds": [{"nopm_without": one, "nopm_with": other} for one, other in pairs],
        "seconds": arguments.seconds,
        "users": arguments.users,
        "warehouses": arguments.warehouses,
        "computer": where,
    }
    return markdown, data


if __name__ == "__main__":
    main()

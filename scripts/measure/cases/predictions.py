"""Are the NOPM right that one run lets predict of others? Makes the runs, and tells.

    predictions [--learned-from RUN] [--plan] [--publish FOLDER]
    predictions --small-caches RESULTS [--slice N/M] [--learned-from RUN] [--plan]

The first run is what is learned from: the curve's set-up with 16 users, in all three arms. The
others differ from it: in the cache's size, the mode, the users or the slow storage. Nothing of them
goes into their predictions but the hit ratio that they had. A set-up that fails is named, and the
others go on. All runs stay in the archive; --learned-from takes one of them again. About 20
minutes, on a computer that does nothing else. --plan only checks that each can be run.

--small-caches is a campaign of 120 set-ups: caches of 5 to 75 % of the database, four policies, two
storages, three numbers of users, windows of a minute after half a minute of ramp-up. As the runs of
the nine set-ups went, that is about 4 minutes each, 8 hours in all; --slice 3/8 makes the third of
eight parts, an hour. Each result is appended to RESULTS, a line of JSON, as it is found: a campaign
that was interrupted goes on with the same command, in any slices, and learns from the same run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from hotset.core.paths import read_json_lines

from ..page import Page, table
from ..paired import say
from ..programs import HOTSET, hotset, run

EXPERIMENT = "experiments/curve.toml"
ERROR_GOAL, COVER_GOAL = 0.1, 0.9
TEACHER = ("tpcc.users=16",)
CACHED = ('arms=["accelerated"]', "warmup.probe_hit_ratio=0")
BOTH = ('arms=["baseline", "accelerated"]', "warmup.probe_hit_ratio=0")
SETUPS: dict[str, tuple[str, ...]] = {
    "cache of 75 %": (*CACHED, "tpcc.users=16", "tier.cache=768MiB"),
    "cache of 50 %": (*CACHED, "tpcc.users=16", "tier.cache=512MiB"),
    "cache of 25 %": (*CACHED, "tpcc.users=16", "tier.cache=256MiB"),
    "write-through": (*CACHED, "tpcc.users=16", 'tier.mode="writethrough"'),
    "4 users": (*BOTH, "tpcc.users=4"),
    "64 users": (*BOTH, "tpcc.users=64"),
    "one disk of 7200 rpm": (*BOTH, "tpcc.users=16", 'storage.model="hdd-7200"'),
    "RAID 5 of 2014": (*BOTH, "tpcc.users=16", 'storage.model="hdd-raid5-2014"'),
    "8 users, cache of 50 %": (*CACHED, "tpcc.users=8", "tier.cache=512MiB"),
}
LONGER = ("tpcc.rampup_s=30", "tpcc.duration_s=60", "repeats=1")
"""Long enough for the database's buffers to fill, and for a cache to write back."""
POLICIES = ("hotset", "smq", "arc", "s3-fifo")
CACHES = {5: "44MiB", 10: "88MiB", 25: "224MiB", 50: "448MiB", 75: "664MiB"}
"""By the share of the database's 888 MiB, in per cent."""
STORAGES = ("nas-2014", "hdd-raid5-2014")
USERS = (4, 16, 64)


def campaign() -> dict[str, tuple[str, ...]]:
    """Small caches on the running tier, mixed, so that any slice has some of everything."""
    settings = {
        f"{policy}, {share} %, {storage}, {users} users": (
            *CACHED,
            *LONGER,
            f"tpcc.users={users}",
            f"tier.cache={CACHES[share]}",
            f'tier.policy="{policy}"',
            f'storage.model="{storage}"',
        )
        for storage in STORAGES
        for users in USERS
        for share in CACHES
        for policy in POLICIES
    }
    return {name: settings[name] for name in sorted(settings, key=mix)}


def mix(name: str) -> str:
    """The same order in every call."""
    return hashlib.sha256(name.encode()).hexdigest()


def slice_of(text: str) -> tuple[int, int]:
    """N/M: the N-th of M parts."""
    match = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not N/M with N from 1 to M, such as 3/8")
    return int(match[1]), int(match[2])


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plan", action="store_true", help="check the set-ups, run none of them")
    parser.add_argument("--learned-from", metavar="RUN", help="a run that an earlier call made")
    parser.add_argument(
        "--small-caches", type=Path, metavar="RESULTS", help="the campaign, and its file; 8 hours"
    )
    parser.add_argument(
        "--slice", type=slice_of, default=(1, 1), metavar="N/M", help="this part of the campaign"
    )


def measure(options: argparse.Namespace) -> Page | None:
    """Run what is learned from, then the others."""
    results, (part, parts) = options.small_caches, options.slice
    if results is None and parts > 1:
        sys.exit("bench: --slice is of the campaign: name its file with --small-caches")
    setups = SETUPS if results is None else dict([*campaign().items()][part - 1 :: parts])
    teacher = TEACHER if results is None else (*TEACHER, *LONGER)
    if options.plan:
        for sets in (teacher, *setups.values()):
            run([HOTSET, "experiment", "plan", EXPERIMENT, *choose(sets)])
        print(f"{1 + len(setups)} set-ups can be run")
        return None
    if results is None:
        return nine_others(options.learned_from or ran("what is learned from", teacher))
    failed = Campaign(results, options.computer).run(setups, options.learned_from)
    if failed:
        sys.exit(f"bench: failed, and to be made again by the same call: {'; '.join(failed)}")
    return None


def nine_others(teacher: str) -> Page:
    """The set-ups of :data:`SETUPS`, and a table of them."""
    arms: list[dict[str, Any]] = []
    failed: list[str] = []
    for name, sets in SETUPS.items():
        checks = check(name, sets, teacher)
        arms += checks or ()
        failed += [] if checks else [name]
    if not arms:
        sys.exit("bench: every set-up failed")
    return page(arms, failed, teacher)


class Campaign:
    """A file of lines of JSON: what was learned from, and each set-up with its arms."""

    def __init__(self, file: Path, computer: str) -> None:
        self.file, self.computer = file, computer

    def add(self, line: dict[str, Any]) -> None:
        """On a line of its own, also behind one that was cut short; on the disk, when it ends."""
        with self.file.open("a") as file:
            file.write(f"\n{json.dumps(line)}\n")
            file.flush()
            os.fsync(file.fileno())

    def teacher(self, named: str | None) -> str:
        """The run that all predictions of the file are learned from: its own, else the named one,
        else one that is made now."""
        lines = read_json_lines(self.file)
        known = next((line["learned_from"] for line in lines if "learned_from" in line), None)
        if known is not None:
            if named not in (None, known):
                sys.exit(f"bench: {self.file} was learned from {known}, not from {named}")
            return str(known)
        made = named or ran("what is learned from", (*TEACHER, *LONGER))
        self.add({"learned_from": made, "computer": self.computer})
        return made

    def run(self, setups: dict[str, tuple[str, ...]], named: str | None) -> list[str]:
        """Make what is not in the file yet; returns what failed."""
        teacher, failed = self.teacher(named), []
        # A set-up whose line was cut short is made again.
        done = {line["setup"] for line in read_json_lines(self.file) if "setup" in line}
        for name, sets in setups.items():
            if name in done:
                continue
            arms = check(name, sets, teacher)
            if arms is None:
                failed.append(name)
                continue
            self.add({"setup": name, "arms": arms})
        return failed


def check(name: str, sets: tuple[str, ...], teacher: str) -> list[dict[str, Any]] | None:
    """Makes a run, and returns what was predicted of each arm and measured; None: it failed."""
    try:
        run_id = ran(name, sets)
        answer = hotset("whatif", "check", run_id, "--by", teacher)
    except subprocess.CalledProcessError as error:
        say(f"{name} failed:\n{error.stderr[-2000:]}")
        return None
    arms = [{"setup": name, "run": run_id, **arm} for arm in answer["arms"]]
    for arm in arms:
        say(" | ".join(row(arm)))
    return arms


def ran(name: str, sets: tuple[str, ...]) -> str:
    """Runs a set-up, and returns its run's id."""
    say(f"{name} …")
    return str(hotset("experiment", "run", EXPERIMENT, *choose(sets), "--quiet")["run"])


def choose(sets: tuple[str, ...]) -> list[str]:
    return [word for setting in ("tier.kind=userspace", *sets) for word in ("--set", setting)]


def row(arm: dict[str, Any]) -> tuple[str, ...]:
    """A line of the table."""
    return (
        f"{arm['setup']}, {arm['arm']}",
        str(arm["users"]),
        f"{arm['hit_ratio']:.1%}",
        *(f"{arm[f'predicted_nopm{end}']:,.0f}" for end in ("", "_low", "_high")),
        f"{arm['measured_nopm']:,.0f}",
        f"{arm['error']:+.0%}",
    )


def page(arms: list[dict[str, Any]], failed: list[str], teacher: str) -> Page:
    off = mean(abs(arm["error"]) for arm in arms)
    within = sum(arm["in_range"] for arm in arms)
    covers = within / len(arms) >= COVER_GOAL
    goals = [
        f"Mean error {off:.0%}, at most {ERROR_GOAL:.0%}:"
        f" {verdict(off <= ERROR_GOAL and not failed)}.",
        f"{within} of {len(arms)} within the range, at least {COVER_GOAL:.0%}:"
        f" {verdict(covers and not failed)}.",
    ]
    if failed:
        goals.append(f"Not measured, as their runs failed: {', '.join(failed)}.")
    head = "set-up, arm|users|hit ratio|NOPM predicted|from|to|measured|error"
    return Page(
        "predictions",
        "NOPM predicted and measured",
        " ".join(goals),
        f"Learned from one run of `{EXPERIMENT}` with 16 users, in all three arms ({teacher}); each"
        " line is another set-up, of which only its hit ratio was known to the prediction.",
        table(head.split("|"), map(row, arms)),
        {
            "learned_from": teacher,
            "mean_error": off,
            "within": within,
            "failed": failed,
            "predictions": arms,
        },
    )


def verdict(met: bool) -> str:
    return "PASS" if met else "MISSED"

"""Are the NOPM right that one run lets predict of others? Makes the runs, and tells.

    bench_predictions.py [--learned-from RUN] [--plan] [--publish FOLDER]
    bench_predictions.py --small-caches RESULTS [--slice N/M] [--learned-from RUN] [--plan]

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

from bench_results import computer, tell

ROOT = Path(__file__).parents[1]
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
    found = {
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
    return {name: found[name] for name in sorted(found, key=mixed)}


def mixed(name: str) -> str:
    """The same order in every call."""
    return hashlib.sha256(name.encode()).hexdigest()


def slice_of(text: str) -> tuple[int, int]:
    """N/M: the N-th of M parts."""
    found = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text)
    if not found or int(found[1]) > int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not N/M with N from 1 to M, such as 3/8")
    return int(found[1]), int(found[2])


def main() -> None:
    """Run what is learned from, then the others."""
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--plan", action="store_true", help="check the set-ups, run none of them")
    words.add_argument("--learned-from", metavar="RUN", help="a run that an earlier call made")
    words.add_argument("--publish", type=Path)
    words.add_argument(
        "--small-caches", type=Path, metavar="RESULTS", help="the campaign, and its file; 8 hours"
    )
    words.add_argument(
        "--slice", type=slice_of, default=(1, 1), metavar="N/M", help="this part of the campaign"
    )
    wanted = words.parse_args()
    if wanted.small_caches is None:
        if wanted.slice != (1, 1):
            words.error("--slice is of the campaign: name its file with --small-caches")
        nine_others(wanted)
        return
    part, parts = wanted.slice
    setups = dict([*campaign().items()][part - 1 :: parts])
    if wanted.plan:
        plan((*TEACHER, *LONGER), *setups.values())
        return
    failed = Campaign(wanted.small_caches).run(setups, wanted.learned_from)
    if failed:
        sys.exit(f"bench: failed, and to be made again by the same call: {'; '.join(failed)}")


def plan(*setups: tuple[str, ...]) -> None:
    """Check that each can be run."""
    for sets in setups:
        hotset("experiment", "plan", EXPERIMENT, *chosen(sets))
    print(f"{len(setups)} set-ups can be run")


def nine_others(wanted: argparse.Namespace) -> None:
    """The set-ups of :data:`SETUPS`, and a table of them."""
    if wanted.plan:
        plan(TEACHER, *SETUPS.values())
        return
    where = computer()
    teacher = wanted.learned_from or made("what is learned from", TEACHER)
    found: list[dict[str, Any]] = []
    failed: list[str] = []
    for name, sets in SETUPS.items():
        try:
            arms = checked(name, sets, teacher)
        except subprocess.CalledProcessError as error:
            print(f"{name} failed:\n{error.stderr[-2000:]}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        print(*map(row, arms), sep="\n", flush=True)
        found += arms
    if not found:
        sys.exit("bench: every set-up failed")
    tell(*report(found, failed, teacher, where), "predictions", wanted.publish)


class Campaign:
    """A file of lines of JSON: what was learned from, and each set-up with its arms."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def lines(self) -> list[dict[str, Any]]:
        """All that were written to their end."""
        found = []
        for line in self.file.read_text().splitlines() if self.file.exists() else []:
            try:
                found.append(json.loads(line))
            except ValueError:
                # Who wrote it was killed meanwhile: that set-up is made again.
                continue
        return found

    def add(self, line: dict[str, Any]) -> None:
        """On a line of its own, also behind one that was cut short; on the disk, when it ends."""
        with self.file.open("a") as file:
            file.write(f"\n{json.dumps(line)}\n")
            file.flush()
            os.fsync(file.fileno())

    def teacher(self, named: str | None) -> str:
        """The run that all predictions of the file are learned from: its own, else the named one,
        else one that is made now."""
        known = next(
            (line["learned_from"] for line in self.lines() if "learned_from" in line), None
        )
        if known is not None:
            if named not in (None, known):
                sys.exit(f"bench: {self.file} was learned from {known}, not from {named}")
            return str(known)
        found = named or made("what is learned from", (*TEACHER, *LONGER))
        self.add({"learned_from": found, "computer": computer()})
        return found

    def run(self, setups: dict[str, tuple[str, ...]], named: str | None) -> list[str]:
        """Make what is not in the file yet; returns what failed."""
        teacher, failed = self.teacher(named), []
        done = {line["setup"] for line in self.lines() if "setup" in line}
        for name, sets in setups.items():
            if name in done:
                continue
            try:
                arms = checked(name, sets, teacher)
            except subprocess.CalledProcessError as error:
                print(f"{name} failed:\n{error.stderr[-2000:]}", file=sys.stderr, flush=True)
                failed.append(name)
                continue
            self.add({"setup": name, "arms": arms})
            print(*map(row, arms), sep="\n", flush=True)
        return failed


def checked(name: str, sets: tuple[str, ...], teacher: str) -> list[dict[str, Any]]:
    """Makes a run, and returns what was predicted of each arm and measured."""
    run = made(name, sets)
    said = hotset("whatif", "check", run, "--by", teacher, "--format", "json")
    return [{"setup": name, "run": run, **arm} for arm in json.loads(said)["arms"]]


def made(name: str, sets: tuple[str, ...]) -> str:
    """Runs a set-up, and returns its run's id."""
    print(f"{name} …", flush=True)
    document = hotset("experiment", "run", EXPERIMENT, *chosen(sets), "--quiet", "--format", "json")
    return str(json.loads(document)["run"])


def chosen(sets: tuple[str, ...]) -> list[str]:
    return [word for one in ("tier.kind=userspace", *sets) for word in ("--set", one)]


def hotset(*words: str) -> str:
    argv = [str(ROOT / "hotset"), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def row(one: dict[str, Any]) -> str:
    """A line of the table."""
    nopm = " | ".join(
        f"{one[key]:,.0f}"
        for key in ("predicted_nopm", "predicted_nopm_low", "predicted_nopm_high", "measured_nopm")
    )
    return (
        f"| {one['setup']} | {one['arm']} | {one['users']} | {one['hit_ratio']:.1%} | {nopm}"
        f" | {one['error']:+.0%} |"
    )


def report(
    found: list[dict[str, Any]], failed: list[str], teacher: str, where: str
) -> tuple[str, dict[str, Any]]:
    """As Markdown, and as numbers."""
    off = mean(abs(one["error"]) for one in found)
    within = sum(one["in_range"] for one in found)
    goals = [
        f"Mean error {off:.0%}, at most {ERROR_GOAL:.0%}:"
        f" {verdict(off <= ERROR_GOAL and not failed)}.",
        f"{within} of {len(found)} within the range, at least {COVER_GOAL:.0%}:"
        f" {verdict(within / len(found) >= COVER_GOAL and not failed)}.",
    ]
    if failed:
        goals.append(f"Not measured, as their runs failed: {', '.join(failed)}.")
    rows = "\n".join(map(row, found))
    markdown = f"""# NOPM predicted and measured

{" ".join(goals)}

Learned from one run of `{EXPERIMENT}` with 16 users, in all three arms ({teacher}); each line is
another set-up, of which only its hit ratio was known to the prediction. {where}. Again:
`scripts/bench.sh predictions`.

| set-up | arm | users | hit ratio | NOPM predicted | from | to | measured | error |
|---|---|---:|---:|---:|---:|---:|---:|---:|
{rows}"""
    data = {
        "learned_from": teacher,
        "mean_error": off,
        "within": within,
        "failed": failed,
        "predictions": found,
        "computer": where,
    }
    return markdown, data


def verdict(met: bool) -> str:
    return "PASS" if met else "MISSED"


if __name__ == "__main__":
    main()

"""Are the NOPM right that one run lets predict of others? Makes the runs, and tells.

    bench_predictions.py [--learned-from RUN] [--plan] [--publish FOLDER]

The first run is what is learned from: the curve's set-up with 16 users, in all three arms. The
others differ from it: in the cache's size, the mode, the users or the slow storage. Nothing of them
goes into their predictions but the hit ratio that they had. A set-up that fails is named, and the
others go on. All runs stay in the archive; --learned-from takes one of them again. About 20
minutes, on a computer that does nothing else. --plan only checks that each can be run.
"""

from __future__ import annotations

import argparse
import json
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


def main() -> None:
    """Run what is learned from, then the others."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    words.add_argument("--plan", action="store_true", help="check the set-ups, run none of them")
    words.add_argument("--learned-from", metavar="RUN", help="a run that an earlier call made")
    words.add_argument("--publish", type=Path)
    wanted = words.parse_args()
    if wanted.plan:
        for sets in (TEACHER, *SETUPS.values()):
            hotset("experiment", "plan", EXPERIMENT, *chosen(sets))
        return
    where = computer()
    teacher = wanted.learned_from or made("what is learned from", TEACHER)
    found: list[dict[str, Any]] = []
    failed: list[str] = []
    for name, sets in SETUPS.items():
        try:
            run = made(name, sets)
            said = hotset("whatif", "check", run, "--by", teacher, "--format", "json")
        except subprocess.CalledProcessError as error:
            print(f"{name} failed:\n{error.stderr[-2000:]}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        arms = [{"setup": name, "run": run, **arm} for arm in json.loads(said)["arms"]]
        print(*map(row, arms), sep="\n", flush=True)
        found += arms
    if not found:
        sys.exit("bench: every set-up failed")
    tell(*report(found, failed, teacher, where), "predictions", wanted.publish)


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

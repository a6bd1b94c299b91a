"""Are the NOPM right that one run lets predict of others? Makes the runs; a table, and JSON.

The first run is what is learned from: the curve's set-up with 16 users, in all three arms. The
others differ from it: in the cache's size, the mode, the users or the slow storage. Nothing of them
goes into their predictions but the hit ratio that they had. About 20 minutes, on a computer that
does nothing else. --plan only checks that each can be run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parents[1]
EXPERIMENT = "experiments/curve.toml"
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
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--plan", action="store_true", help="check the set-ups, run none of them")
    words.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    wanted = words.parse_args()
    if wanted.plan:
        for sets in (TEACHER, *SETUPS.values()):
            hotset("experiment", "plan", EXPERIMENT, *chosen(sets))
        return
    teacher = made("what is learned from", TEACHER)
    found = []
    for name, sets in SETUPS.items():
        run = made(name, sets)
        checked = json.loads(hotset("whatif", "check", run, "--by", teacher, "--format", "json"))
        found += [{"setup": name, "run": run, **arm} for arm in checked["arms"]]
        if wanted.json:
            figures = {"learned_from": teacher, "predictions": found}
            wanted.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(*table(found), sep="\n")


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


def table(found: list[dict[str, Any]]) -> list[str]:
    """As Markdown."""
    lines = [
        "| set-up | arm | users | hit ratio | NOPM predicted | from | to | measured | error |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        nopm = " | ".join(
            f"{one[key]:,.0f}"
            for key in ("predicted_nopm", "predicted_nopm_low", "predicted_nopm_high")
        )
        lines.append(
            f"| {one['setup']} | {one['arm']} | {one['users']} | {one['hit_ratio']:.1%} | {nopm}"
            f" | {one['measured_nopm']:,.0f} | {one['error']:+.0%} |"
        )
    off, within = mean(abs(one["error"]) for one in found), sum(one["in_range"] for one in found)
    lines += ["", f"Mean error {off:.0%}; {within} of {len(found)} within the range."]
    return lines


if __name__ == "__main__":
    main()

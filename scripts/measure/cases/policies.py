"""Comparison of cache policies on small caches: one trace by users who wait, in virtual time.

Every cache is warm when it begins: it holds the blocks that the trace's first part asked for most.
The rest of the trace is then asked for by --users, each making its next request once it has its
answer, on the modelled origin and flash. Figures do not depend on the load of this computer. A
trace has `SECONDS R|W OFFSET BYTES` lines, as `flashdev serve --trace` writes them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from hotset.block import flashdev
from hotset.core.machines.local import Local

MIB = 1024**2
ALONE = "alone"


def add_options(words: argparse.ArgumentParser) -> None:
    words.add_argument("trace", type=Path)
    words.add_argument("--database-mib", type=int, required=True, help="caches are shares of it")
    words.add_argument("--origin-mib", type=int, required=True, help="size of the slow disk")
    words.add_argument("--shares", default="5,10,25,50,75", help="percent of the database")
    words.add_argument(
        "--policies",
        default="smq,arc,s3-fifo,hotset,hotset/16K",
        help="each with its block size after a slash, where it is not 64K",
    )
    words.add_argument("--warm-by", type=int, default=0, help="requests of the first part")
    words.add_argument("--users", type=int, default=16)
    words.add_argument("--think-us", type=int, default=500, help="CPU time per request")
    words.add_argument("--origin-model", default="nas-2014")
    words.add_argument("--flash-model", default="pcie-flash-2014")
    words.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")


def measure(wanted: argparse.Namespace) -> None:
    """All caches, and the disk alone."""
    shares = [int(share) for share in wanted.shares.split(",")]
    policies = wanted.policies.split(",")
    with ThreadPoolExecutor(2) as pool:
        alone = pool.submit(simulate, wanted, ALONE, 100)
        runs = {key: pool.submit(simulate, wanted, *key) for key in product(policies, shares)}
        results = {key: run.result() for key, run in runs.items()}
    base = alone.result()
    print(*table(policies, shares, base, results), sep="\n")
    if wanted.json:
        rows = [{"policy": p, "share": s, **figures} for (p, s), figures in results.items()]
        text = json.dumps({"alone": base, "caches": rows}, indent=1)
        wanted.json.write_text(text + "\n")


def simulate(wanted: argparse.Namespace, policy: str, share: int) -> dict[str, Any]:
    """``flashdev simulate`` with a cache of so many percent of the database."""
    name, _, block = policy.partition("/")
    block_kib = int((block or "64K").removesuffix("K"))
    slots = wanted.database_mib * 1024 * share // 100 // block_kib
    argv = [
        str(flashdev.program(Local())),
        "simulate",
        *("--policy", name, "--block", f"{block_kib}K", "--cache-blocks", str(slots)),
        *("--origin-model", wanted.origin_model, "--flash-model", wanted.flash_model),
        *("--origin-size", f"{wanted.origin_mib}M", "--users", str(wanted.users)),
        *("--think-us", str(wanted.think_us), "--trace", str(wanted.trace), "--json"),
    ]
    if name == ALONE:
        argv[argv.index(ALONE)] = "lru"
        argv += ["--alone"]
    else:
        argv += ["--warm-by", str(wanted.warm_by)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def table(
    policies: list[str],
    shares: list[int],
    base: dict[str, Any],
    results: dict[tuple[str, int], dict[str, Any]],
) -> list[str]:
    """Format as Markdown: requests a second, as a multiple of the disk alone, and hits."""
    lines = [
        f"The disk alone: {base['iops']:,.0f} requests/s.",
        "",
        f"| policy | {' | '.join(f'{share} %' for share in shares)} |",
        f"|---|{'---|' * len(shares)}",
    ]
    for policy in policies:
        cells = []
        for share in shares:
            result = results[policy, share]
            hits = result["read_hits"] + result["write_hits"]
            ratio = hits / (hits + result["read_misses"] + result["write_misses"])
            factor = result["iops"] / base["iops"]
            cells.append(f"{result['iops']:,.0f} ({factor:.1f}x, {100 * ratio:.0f} %)")
        lines.append(f"| {policy} | {' | '.join(cells)} |")
    return lines

"""The demo's experiment on a tier, and the modelled devices below it."""

from __future__ import annotations

import argparse
import subprocess
from itertools import product

from ..programs import HOTSET

CACHES_MIB = (51, 102, 256, 512, 768)
"""5, 10, 25, 50 and 75 % of the databases."""


def measure(options: argparse.Namespace) -> None:
    """Show what the commands print."""
    kind = "userspace" if options.case == "userspace" else "dm-cache"
    tier = [f"tier.kind={kind}", f"repeats={options.repeats}"]
    experiment(*tier)
    if kind == "userspace":
        print("\ncaches smaller than the databases (1 GiB), warmed in disk order and by heat:")
        alone = [*tier, 'arms=["accelerated"]', "warmup.probe_hit_ratio=0"]
        for cache, order in product(CACHES_MIB, ("disk", "heat")):
            experiment(*alone, f"tier.cache={cache}MiB", f"warmup.order={order}", csv=True)
    machine = "image" if kind == "userspace" else "uml"
    print("\nthe tier itself:", flush=True)
    subprocess.run([HOTSET, "disk", "calibrate", "--machine", machine], check=True)


def experiment(*settings: str, csv: bool = False) -> None:
    """The demo's, with other values."""
    words = [word for setting in settings for word in ("--set", setting)]
    words += ["--quiet", "--format", "csv"] if csv else []
    subprocess.run([HOTSET, "experiment", "run", "experiments/demo.toml", *words], check=True)

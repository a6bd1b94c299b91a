"""The cache policies of ``flashdev simulate`` against libCacheSim, their papers' simulator."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import libcachesim
import numpy as np
import numpy.typing as npt
import pytest

from hotset.block import flashdev
from hotset.core.machines.local import Local

Blocks = npt.NDArray[np.int64]

REQUESTS = 40_000
REQUESTS_PER_S = 500
ORACLES = {
    "lru": libcachesim.LRU,
    "sieve": libcachesim.Sieve,
    "s3-fifo": libcachesim.S3FIFO,
    "arc": libcachesim.ARC,
}


def zipf(rng: np.random.Generator, count: int, blocks: int, exponent: float) -> Blocks:
    """Requests whose blocks have Zipf-distributed popularity, in no order of address."""
    weights = 1 / np.arange(1, blocks + 1) ** exponent
    return rng.permutation(blocks)[rng.choice(blocks, count, p=weights / weights.sum())]


def skewed(rng: np.random.Generator) -> Blocks:
    return zipf(rng, REQUESTS, 5_000, 0.9)


def scanned(rng: np.random.Generator) -> Blocks:
    """Half of the requests are a loop over blocks that nothing else touches."""
    loop = 5_000 + np.arange(REQUESTS) % 3_000
    return np.where(rng.random(REQUESTS) < 0.5, loop, zipf(rng, REQUESTS, 5_000, 0.9))


def shifting(rng: np.random.Generator) -> Blocks:
    """Every quarter of the time, half of the working set is new."""
    quarters = [zipf(rng, REQUESTS // 4, 3_000, 1.0) + 1_500 * quarter for quarter in range(4)]
    return np.concatenate(quarters)


NIGHT = pytest.mark.night
SLOTS = (333, *(pytest.param(slots, marks=NIGHT) for slots in (1_000, 4_000)))

TRACES = {make.__name__: make(np.random.default_rng(7)) for make in (skewed, scanned, shifting)}
NAMES = ("scanned", *(pytest.param(name, marks=NIGHT) for name in TRACES if name != "scanned"))


def simulate_argv(trace: Path, policy: str, slots: int) -> list[str]:
    program = str(flashdev.program(Local()))
    return [
        program,
        "simulate",
        "--policy",
        policy,
        f"--cache-blocks={slots}",
        f"--trace={trace}",
        "--block=1",
    ]


def simulated(folder: Path, trace: Blocks, policy: str, slots: int) -> dict[str, Any]:
    lines = [
        f"{at / REQUESTS_PER_S} {'RW'[block % 2]} {block} 1\n" for at, block in enumerate(trace)
    ]
    file = folder / "trace"
    file.write_text("".join(lines))
    argv = simulate_argv(file, policy, slots)
    done = subprocess.run([*argv, "--json"], check=True, stdout=subprocess.PIPE)
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def misses_by_oracle(trace: Blocks, policy: str, slots: int) -> int:
    cache = ORACLES[policy](slots, hashpower=14)
    request = libcachesim.Request()
    request.obj_size = 1
    misses = 0
    for block in trace.tolist():
        request.obj_id = block
        misses += not cache.get(request)
    return misses


# At least 20 slots: for fewer, libCacheSim's S3-FIFO refuses to cache anything.
@pytest.mark.parametrize("slots", [pytest.param(20, marks=NIGHT), *SLOTS])
@pytest.mark.parametrize("trace", NAMES)
@pytest.mark.parametrize("policy", ORACLES)
def test_misses_are_those_of_the_oracle(
    tmp_path: Path, policy: str, trace: str, slots: int
) -> None:
    outcome = simulated(tmp_path, TRACES[trace], policy, slots)
    assert outcome["misses"] == misses_by_oracle(TRACES[trace], policy, slots)
    assert outcome["hits"] + outcome["misses"] == outcome["requests"] == REQUESTS
    assert outcome["promotions"] == outcome["misses"]
    assert outcome["promotions"] - outcome["demotions"] == min(slots, len(np.unique(TRACES[trace])))


def test_smq_keeps_what_is_hot_and_little_of_a_scan(tmp_path: Path) -> None:
    """smq has no oracle: it must at least beat chance and copy less than it misses."""
    outcome = simulated(tmp_path, TRACES["skewed"], "smq", 1_000)
    ideal = np.sort(np.bincount(TRACES["skewed"]))[::-1][:1_000].sum() / REQUESTS
    hit_ratio = outcome["hits"] / REQUESTS
    assert 1_000 / 5_000 < hit_ratio < ideal
    assert outcome["promotions"] < outcome["misses"] / 2


def test_a_bad_line_is_refused_in_one_sentence(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("0 R 1 1\n1 R one 1\n")
    argv = simulate_argv(trace, "lru", 9)
    done = subprocess.run(argv, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        f"flashdev: {trace} line 2, `1 R one 1`: give an offset in bytes, not `one`\n"
    )

"""What the published windows say of the model: each predicted from windows that it is not in, and
what the published simulations of small caches tell of the blocks that policies move.

``HOTSET_UPDATE_GOLDEN=1 pytest harness/tests/whatif/test_held_out.py`` writes both files of the
package again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import astuple, dataclass, replace
from functools import cache
from itertools import product
from math import fsum, log
from statistics import mean
from typing import Any

from hotset.reports.model.base import ArmName
from hotset.reports.model.document import RunDocument
from hotset.whatif.checking import Devices, check
from hotset.whatif.demands import SetUp
from hotset.whatif.doubt import HeldOut, Kind
from hotset.whatif.prediction import (
    PredictedLine,
    Prediction,
    predict,
    predict_by,
    rates,
    teach,
    windows,
)
from hotset.whatif.traffic import CacheKind

from .published import CARD, FOLDER, NAS, of_users, published

SMALL = "20261122-small-caches"
SMQ, HOTSET = "20261121-220932-demo", "20261123-164110-demo"
CURVES = ("20261122-215748-curve", "20261123-165615-curve")
ALIKE = (CURVES[0], HOTSET, CURVES[1])
"""Of one set-up at 16 users, with the policy hotset."""
FLASH_IOPS = {1: 11_111.0, 4: 44_444.0, 8: 88_889.0, 16: 89_961.0}
"""pcie-flash-2014's random reads of 8 KiB: 90 µs each, until its limit."""
QUIET = "20261126-061610-demo"
"""Of the computer and the days of the windows of small caches."""
BLOCK, PAGE = 65536, 8192
LOG_MOVED = (1.0, 1.1, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5)
COSTS = (0.25, 0.5, 0.75, 1.0, 1.25)
"""Of writing back a block with hotset's policy, in random reads of a page."""
FOLDS = 4
_ROW = re.compile(r"\| (\d+) MiB, [^|]+\|(.*)\|")
_CELL = re.compile(r"([\d,]+) \(([\d.]+) %\)")


@dataclass(frozen=True)
class Small:
    """A window with a small cache on the running tier, as its page has it."""

    name: str
    cache: CacheKind
    hit_ratio: float
    nopm: float


@cache
def on_the_running_tier() -> tuple[Small, ...]:
    """The windows whose hit ratios were published: the page's last two tables."""
    found: list[Small] = []
    heads: list[tuple[str, int]] = []
    for line in (FOLDER / SMALL / "README.md").read_text().splitlines():
        if line.startswith("| NOPM (hit ratio)"):
            kinds = [cell.strip().split(", ") for cell in line.strip("|").split("|")[1:]]
            heads = [
                (kind[0], int(kind[1].split()[0]) << 10 if kind[1:] else BLOCK) for kind in kinds
            ]
        elif row := _ROW.match(line):
            for (policy, block), cell in zip(heads, _CELL.findall(row[2]), strict=True):
                name = f"{SMALL} {policy} {row[1]} MiB {block >> 10} KiB"
                kind = CacheKind(policy, "writeback", block)
                nopm = float(cell[0].replace(",", ""))
                found.append(Small(name, kind, round(float(cell[1]) / 100, 4), nopm))
    return tuple(found)


Choice = tuple[float, float]
"""What a log on flash gives by itself, and hotset's cost of a block that is written back."""


@cache
def small_cache_lines() -> dict[tuple[Choice, str], PredictedLine]:
    """Every window by every choice."""
    lines = {}
    for moved in LOG_MOVED:
        taught = teach(published(QUIET), NAS, CARD, log_moved=moved)
        for window in on_the_running_tier():
            assumed = taught.traffic_of(window.cache)
            assert assumed
            own = window.cache.policy == "hotset"
            for cost in COSTS if own else (assumed.cost,):
                asked = SetUp(16, 2, rates(NAS, 16), replace(assumed, cost=cost))
                line = predict_by(taught, asked, [window.hit_ratio]).lines[0]
                for each in [cost] if own else COSTS:
                    lines[(moved, each), window.name] = line
    return lines


def calibrate(known: Collection[Small]) -> Choice:
    """Choose what predicts these windows best, by the squares of the errors' logarithms."""
    lines = small_cache_lines()

    def squares(choice: Choice) -> float:
        return fsum(log(lines[choice, one.name].nopm / one.nopm) ** 2 for one in known)

    return min(product(LOG_MOVED, COSTS), key=squares)


def run_of(name: str) -> RunDocument:
    """With 16 users alone, also where it is a curve."""
    run = published(name)
    return of_users(run, 16) if name in CURVES else run


def simulations() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / SMALL / "curve.json").read_text())
    return found


def hit_ratio(one: dict[str, Any]) -> float:
    hits, misses = (one[f"read_{of}"] + one[f"write_{of}"] for of in ("hits", "misses"))
    return float(hits / (hits + misses))


def everything() -> Iterator[HeldOut]:
    yield from small_caches()
    yield from other_policies()
    yield from other_storage()
    yield from other_users()
    yield from other_runs()


def held(
    kind: Kind, window: str, by: str, ratio: float, users: int, found: Prediction, nopm: float
) -> HeldOut:
    line = found.lines[0]
    return HeldOut(kind, window, by, round(ratio, 4), users, round(line.nopm, 1), round(nopm, 1))


def small_caches() -> Iterator[HeldOut]:
    """Another hit ratio, policy and block size: five windows held out at a time, and what is
    assumed calibrated on the other fifteen."""
    every, found = on_the_running_tier(), {}
    for fold in range(FOLDS):
        held_out = every[fold::FOLDS]
        choice = calibrate([one for one in every if one not in held_out])
        found |= {one.name: small_cache_lines()[choice, one.name].nopm for one in held_out}
    for one in every:
        nopm = round(found[one.name], 1)
        yield HeldOut("hit ratio", one.name, QUIET, one.hit_ratio, 16, nopm, one.nopm)


def other_policies() -> Iterator[HeldOut]:
    """A full cache of smq from runs of hotset, and the other way around."""
    pairs = [*((SMQ, name) for name in ALIKE), *((name, SMQ) for name in ALIKE)]
    for name, by in pairs:
        measured = run_of(name).arm("accelerated")
        assert measured
        tier = run_of(name).tier
        assert tier
        ratio = mean(one.hit_ratio or 0.0 for one in measured.repeats)
        cache = CacheKind(tier.policy, tier.mode, tier.block_bytes)
        found = predict(run_of(by), NAS, [ratio], flash=CARD, cache=cache)
        nopm = mean(one.rate for one in measured.repeats)
        yield held("policy", f"{name} accelerated", by, ratio, 16, found, nopm)


def other_storage() -> Iterator[HeldOut]:
    """All-flash, as storage under a server that caches nothing; of that run, the arms before and
    after were learned from."""
    for name in (SMQ, HOTSET, *CURVES):
        whole = published(name)
        arm = whole.arm("all-flash")
        assert arm
        for users, measured in sorted(windows(arm, whole).items()):
            run = of_users(whole, users) if name in CURVES else whole
            found = predict(run, NAS, [0.0], flash=CARD, asked_iops=FLASH_IOPS)
            nopm = mean(one.rate for one in measured)
            window = f"{name} all-flash {users} users"
            yield held("storage", window, f"{name}, other arms", 0.0, users, found, nopm)


def other_users() -> Iterator[HeldOut]:
    """Every point of a curve, from every other one."""
    for name in CURVES:
        curve = published(name)
        assert curve.database
        arm = curve.arm("baseline")
        assert arm
        for by in sorted(windows(arm, curve)):
            for one in check(curve, of_users(curve, by), NAS, Devices(NAS, CARD)):
                if one.users != by:
                    yield HeldOut(
                        "users",
                        f"{name} {one.arm} {one.users} users",
                        f"{name} {by} users",
                        round(one.hit_ratio, 4),
                        one.users,
                        round(one.predicted_nopm, 1),
                        round(one.measured_nopm, 1),
                    )


def other_runs() -> Iterator[HeldOut]:
    """The same set-up on another day."""
    arms: tuple[ArmName, ...] = ("baseline", "accelerated", "all-flash")
    for by in ALIKE:
        for name in ALIKE:
            if name == by:
                continue
            run = run_of(name)
            for arm in arms:
                found = run.arm(arm)
                assert found
                fast = None if arm == "baseline" else arm
                taught = teach(run_of(by), NAS, CARD, 16, fast)
                traffic = None if arm == "all-flash" else taught.measured.traffic
                ratio = (
                    0.0
                    if arm == "baseline"
                    else mean(
                        1.0 if one.hit_ratio is None else one.hit_ratio for one in found.repeats
                    )
                )
                asked = SetUp(16, 2, rates(NAS, 16), traffic)
                said = predict_by(taught, asked, [ratio])
                nopm = mean(one.rate for one in found.repeats)
                yield held("another run", f"{name} {arm}", by, ratio, 16, said, nopm)


def policies() -> dict[str, Any]:
    """As simulated, with hotset's cost as the windows on the running tier have it."""
    found = {name: dict(one) for name, one in simulated_policies().items()}
    found["hotset"]["cost"] = calibrate(on_the_running_tier())[1]
    return found


@cache
def simulated_policies() -> dict[str, Any]:
    """By policy, with blocks of 64 KiB: promotions for each miss, write-backs for each write that
    hits, and what moving a block cost the disk, in random reads of a page: that with which misses
    and moved blocks are, by least squares of relative errors, what the disk served alone."""
    found = simulations()
    alone = found["alone"]["iops"]
    each: dict[str, list[dict[str, Any]]] = {}
    for one in found["caches"]:
        if "/" not in one["policy"]:
            each.setdefault(one["policy"], []).append(one)
    return {name: _policy(caches, alone) for name, caches in each.items()}


def _policy(caches: list[dict[str, Any]], alone: float) -> dict[str, Any]:
    points, moved, more = [], [], []
    for one in caches:
        misses = one["read_misses"] + one["write_misses"]
        requests = misses + one["read_hits"] + one["write_hits"]
        points.append(
            (
                round(hit_ratio(one), 4),
                round(one["promotions"] / misses, 4),
                round(one["write_backs"] / one["write_hits"], 4),
            )
        )
        served = alone / one["iops"]
        moved.append((one["promotions"] + one["write_backs"]) / requests / served)
        more.append((served - misses / requests) / served)
    products = fsum(a * b for a, b in zip(moved, more, strict=True))
    cost = max(0.0, products / fsum(a * a for a in moved))
    return {"block_bytes": BLOCK, "page_bytes": PAGE, "cost": round(cost, 3), "points": points}


def as_json(source: str, name: str, found: Any, **more: float) -> str:  # noqa: ANN401 - a list, a table
    """A window, or a policy, a line."""
    head = {"version": 1, "source": source, **more}
    lines = json.dumps(head, indent=1)[:-2]
    if isinstance(found, dict):
        body = ",\n".join(f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in found.items())
        return f'{lines},\n "{name}": {{\n{body}\n }}\n}}\n'
    body = ",\n".join(f"  {json.dumps(astuple(one))}" for one in found)
    return f'{lines},\n "{name}": [\n{body}\n ]\n}}\n'

"""What the published windows say of the model: each predicted from windows that it is not in, and
what the published simulations of small caches tell of the blocks that policies move.

``HOTSET_UPDATE_GOLDEN=1 pytest harness/tests/whatif/test_held_out.py`` writes both files of the
package again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple
from math import fsum
from statistics import mean
from typing import Any

from hotset.reports.model.base import ArmName
from hotset.reports.model.document import RunDocument
from hotset.whatif.checking import Devices, check
from hotset.whatif.demands import SetUp
from hotset.whatif.doubt import HeldOut, Kind
from hotset.whatif.prediction import Prediction, predict, predict_by, rates, teach, windows
from hotset.whatif.traffic import CacheKind

from .published import CARD, FOLDER, NAS, of_users, published

SMALL = "20261122-small-caches"
SMQ, HOTSET = "20261121-220932-demo", "20261123-164110-demo"
CURVES = ("20261122-215748-curve", "20261123-165615-curve")
ALIKE = (CURVES[0], HOTSET, CURVES[1])
"""Of one set-up at 16 users, with the policy hotset."""
FLASH_IOPS = {1: 11_111.0, 4: 44_444.0, 8: 88_889.0, 16: 89_961.0}
"""pcie-flash-2014's random reads of 8 KiB: 90 µs each, until its limit."""
RUNNING = {("hotset", 25): 3128, ("hotset", 50): 11368, ("smq", 25): 1482, ("smq", 50): 1894}
"""NOPM of the windows "on the running tier", by policy and cache (per cent of the database)."""
BLOCK, PAGE = 65536, 8192


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
    """Another hit ratio, of the same policy. That of a window was not published: it is the
    simulation's with a cache of that size."""
    ratios = {
        (one["policy"], one["share"]): hit_ratio(one)
        for one in simulations()["caches"]
        if (one["policy"], one["share"]) in RUNNING
    }
    for (policy, share), nopm in RUNNING.items():
        ratio = ratios[policy, share]
        for name in (SMQ,) if policy == "smq" else ALIKE:
            found = predict(run_of(name), NAS, [ratio], flash=CARD)
            window = f"{SMALL} {policy} {share} %"
            yield held("hit ratio", window, name, ratio, 16, found, nopm)


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


def as_json(source: str, name: str, found: Any) -> str:  # noqa: ANN401 - lists or tables
    """A window, or a policy, a line."""
    head = {"version": 1, "source": source}
    lines = json.dumps(head, indent=1)[:-2]
    if isinstance(found, dict):
        body = ",\n".join(f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in found.items())
        return f'{lines},\n "{name}": {{\n{body}\n }}\n}}\n'
    body = ",\n".join(f"  {json.dumps(astuple(one))}" for one in found)
    return f'{lines},\n "{name}": [\n{body}\n ]\n}}\n'

"""Cost of each arm, and of a new order a minute in it.

Only what the experiment names is included: no licence, maintenance, power or discount. So this is
not a TPC price/performance metric, and the text says so wherever the values are shown.
"""

from __future__ import annotations

from math import fsum

from hotset.core import words

from ..model.base import ArmName
from ..model.document import CACHED_ARMS, Cost, RunDocument
from ..model.setup import Prices
from . import answer, units
from .answer import ArmFigures

GB = 1e9
HOW = (
    "This run has no prices. Put them into the experiment file (currency, server, origin and"
    " flash_per_gb below [prices]), or give them to its report as prices: server=6000,"
    " origin=2500, flash_per_gb=1.20."
)


def costs(document: RunDocument, prices: Prices) -> tuple[Cost, ...]:
    """One of each arm that was measured, in the order of the report."""
    arms = answer.arms(document)
    base = next((arm for arm in arms if arm.name == "baseline"), None)
    before = _price(document, prices, "baseline")
    return tuple(_cost(document, prices, arm, base, before) for arm in arms)


def with_prices(document: RunDocument, prices: Prices) -> RunDocument:
    """The document with prices, and all that follows from them."""
    return document.model_copy(update={"prices": prices, "costs": costs(document, prices)})


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `rows`."""
    unit = units.find_unit(document).short
    return (
        "arm",
        "flash",
        "price",
        unit,
        f"price / {unit}",
        f"gained {unit} / GB of flash",
        f"price / gained {unit}",
    )


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """The lines under `columns`; empty where no prices are known."""
    arms = {arm.name: arm for arm in answer.arms(document)}
    return [
        (
            cost.arm,
            words.size(cost.flash_bytes) if cost.flash_bytes else "none",
            words.money(cost.price),
            words.count(arms[cost.arm].rate),
            words.money(cost.price_per_nopm),
            words.count(cost.gained_nopm_per_flash_gb),
            words.money(cost.price_per_gained_nopm),
        )
        for cost in document.costs
        if cost.arm in arms
    ]


def assumptions(document: RunDocument) -> str:
    """Describe what is included, and what these values are not."""
    prices = document.prices
    if prices is None:
        return HOW
    known = [
        f"{label} {words.money(value)}"
        for label, value in (
            ("server", prices.server),
            ("slow storage", prices.origin),
            ("each further slow disk", prices.split_disk),
            ("a GB of flash", prices.flash_per_gb),
            ("a GB of memory for buffers", prices.memory_per_gb),
        )
        if value is not None
    ]
    return (
        f"In {prices.currency}: {words.enumerate_words(known)}. Flash counts as far as the arm uses"
        " it: the cache, its metadata and the volume, or the whole database disk, in the sizes of"
        " this run. Items without a price are left out, so this is not a TPC price/performance"
        " metric; it compares the arms of this run only."
    )


def _cost(
    document: RunDocument,
    prices: Prices,
    arm: ArmFigures,
    base: ArmFigures | None,
    before: float | None,
) -> Cost:
    flash = _flash_bytes(document, arm.name)
    price = _price(document, prices, arm.name)
    gained = arm.rate - base.rate if base is not None else 0.0
    more = price - before if price is not None and before is not None else 0.0
    return Cost(
        arm=arm.name,
        flash_bytes=flash,
        price=price,
        price_per_nopm=price / arm.rate if price is not None and arm.rate else None,
        gained_nopm_per_flash_gb=gained * GB / flash if flash and gained > 0 else None,
        price_per_gained_nopm=more / gained if gained > 0 and more > 0 else None,
    )


def _flash_bytes(document: RunDocument, arm: ArmName) -> int:
    tier, storage = document.tier, document.storage
    if tier is None or storage is None:
        return 0
    cached = tier.cache_bytes + tier.metadata_bytes + tier.volume_bytes
    return {
        **dict.fromkeys(CACHED_ARMS, cached),
        "flash-volume": tier.volume_bytes,
        "all-flash": storage.size_bytes + tier.volume_bytes,
    }.get(arm, 0)


def _price(document: RunDocument, prices: Prices, arm: ArmName) -> float | None:
    """The sum of an arm's parts; None where one of them has no price."""
    parts: list[float | None] = [prices.server]
    if arm != "all-flash":
        parts.append(prices.origin)
    if flash := _flash_bytes(document, arm):
        parts.append(_times(prices.flash_per_gb, flash / GB))
    if arm == "split-disks":
        parts.append(_times(prices.split_disk, _split_disks(document) - 1))
    if arm == "in-memory" and document.database is not None:
        parts.append(_times(prices.memory_per_gb, document.database.bytes / GB))
    known = [part for part in parts if part is not None]
    return fsum(known) if len(known) == len(parts) else None


def _times(price: float | None, amount: float) -> float | None:
    return None if price is None else price * amount


def _split_disks(document: RunDocument) -> int:
    storage = document.experiment.spec.get("storage")
    disks = storage.get("split_disks") if isinstance(storage, dict) else None
    return disks if isinstance(disks, int) else 2

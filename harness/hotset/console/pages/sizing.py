"""How much flash: what a run's set-up would do at other hit ratios, and what that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from hotset.block import flashdev
from hotset.core.errors import HotsetError
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.core.words import percent
from hotset.reports.archive import Archive
from hotset.whatif.doubt import Doubt, in_words

from .. import backend
from ..filters import factor, rate
from ..forms import answer, values_of
from ..web import console_of, page, problem, render

_RATIOS = [0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95]
_RATIOS += [0.96, 0.97, 0.98, 0.99, 0.995, 1.0]
_WIDTH, _HEIGHT = 1000.0, 240.0
_PRICE_MAX = 1e9


@dataclass(frozen=True, slots=True)
class Point:
    """A hit ratio, what it takes and gives, and where it is drawn.

    :ivar flash: the least that can hold so many of a disk's requests; None: no disk was chosen.
    :ivar low: ``y`` of the lowest NOPM of the range; ``high``: of the highest.
    """

    line: dict[str, Any]
    flash: int | None
    price: float | None
    x: str
    y: str
    low: str
    high: str

    @property
    def words(self) -> str:
        line = self.line
        takes = "" if self.flash is None else f" {Bytes(self.flash)} of flash at least."
        costs = "" if self.price is None else f" That flash costs {self.price:,.2f}."
        return (
            f"{percent(line['hit_ratio'])} hits: {rate(line['nopm'])} NOPM"
            f" ({rate(line['nopm_low'])} to {rate(line['nopm_high'])}), {factor(line['factor'])}"
            f" nothing cached, {line['response_ms']:.1f} ms a transaction. Most time:"
            f" {line['most_time']}.{takes}{costs}"
        )


async def _sizing(request: Request) -> Response:
    runs = [row.run for row in await run_in_threadpool(Archive.default().listing) if row.factor]
    return render(
        request,
        "sizing.html",
        runs=runs,
        disks=await _disks(console_of(request).settings.machine),
        storages=await run_in_threadpool(_storages),
    )


async def _curve(request: Request) -> Response:
    """The answer to the form, put below it."""
    asked = request.query_params
    price = _price(asked.get("price", ""))
    if price is not None and not 0 <= price <= _PRICE_MAX:
        return problem(request, 422, "That is refused", "The price of a GiB is 0 to 1e9.")
    operation = "whatif predict"
    fixed: dict[str, object] = {"hit_ratio": _RATIOS}
    if asked.get("disk"):
        operation = "whatif flash"
        fixed["machine"] = console_of(request).settings.machine
    result, refused = await answer(request, operation, values_of(asked, operation, **fixed))
    if refused:
        return refused
    if operation == "whatif flash" and result["prediction"] is None:
        return render(request, "sizing_needs.html", found=result, price=price)
    return render(request, "sizing_curve.html", **_show(result, price))


def _show(result: dict[str, Any], price: float | None) -> dict[str, Any]:
    """For the template. :param result: what ``whatif predict`` or ``whatif flash`` answers."""
    needs = [need["flash_bytes"] for need in result["needs"]] if "needs" in result else None
    predicted = result["prediction"] if needs else result
    points = _points(predicted["lines"], needs, price)
    enough = predicted["enough_hit_ratio"]
    best = next(at for at, point in enumerate(points) if point.line["hit_ratio"] >= enough)
    doubts = in_words(Doubt(**doubt) for doubt in predicted["doubts"])
    return {
        "points": points,
        "best": best,
        "predicted": predicted,
        "needs": needs,
        "doubts": doubts,
    }


def _price(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return -1.0


def _points(
    lines: list[dict[str, Any]], needs: list[int] | None, price: float | None
) -> list[Point]:
    """Across: the flash where it is known, else the hit ratio; up: NOPM, from zero."""
    highest = max(line["nopm_high"] for line in lines)
    across = needs or [line["hit_ratio"] for line in lines]
    widest = max(across) or 1

    def down(nopm: float) -> str:
        return f"{_HEIGHT - 10 - (_HEIGHT - 25) * nopm / highest:.1f}"

    return [
        Point(
            line,
            flash=needs[at] if needs else None,
            price=price * needs[at] / 1024**3 if needs and price is not None else None,
            x=f"{20 + (_WIDTH - 40) * across[at] / widest:.1f}",
            y=down(line["nopm"]),
            low=down(line["nopm_low"]),
            high=down(line["nopm_high"]),
        )
        for at, line in enumerate(lines)
    ]


async def _disks(machine: str) -> list[str]:
    """Accelerated disks; none where the machine cannot be looked at, which other pages say."""
    try:
        return await backend.disk_names(machine)
    except backend.BackendError:
        return []


def _storages() -> list[str]:
    """Models of slow storage; none where ``flashdev`` is not built, which the answer says."""
    try:
        return list(flashdev.library(Local()))
    except HotsetError:
        return []


ROUTES = [page("/sizing", _sizing), page("/sizing/curve", _curve)]

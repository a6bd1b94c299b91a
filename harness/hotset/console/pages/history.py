"""Recorded history of the machine as charts: for the overview, and for one disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from hotset.core import clock
from hotset.core.errors import HotsetError
from hotset.monitoring.history import opening, series
from hotset.monitoring.history.readings import Span
from hotset.monitoring.history.series import Choice, DiskSeries, Series
from hotset.monitoring.history.store import FINEST_S

from ..web import console_of, page, render, template

EVENTS_SHOWN = 30
_AGAIN_S = (FINEST_S, 60)
"""A page asks again after a step of its charts, but within these bounds."""


async def _disk(request: Request) -> Response:
    name = request.path_params["name"]
    choice = series.find_choice(request.query_params.get("span", "24h"))
    return render(request, "history.html", disk=name, charts=charts_of(choice, name))


async def _series(request: Request) -> Response:
    console = console_of(request)
    choice = series.find_choice(request.query_params.get("span", ""))
    disk = request.query_params.get("disk")
    # Asked by many within the same moment, it is made once.
    moment, notice = int(time.time()) // FINEST_S, console.recorder.notice
    text = await run_in_threadpool(_text, console.settings.machine, choice, disk, moment, notice)
    return Response(text, media_type="application/json")


@dataclass(frozen=True, slots=True)
class Charts:
    """Settings of a page with charts: how much they show, the page's own path, and where the values
    come from."""

    choice: Choice
    path: str
    source: str
    choices: Sequence[Choice] = series.CHOICES


def charts_of(choice: Choice, disk: str | None = None) -> Charts:
    """Return the charts of the whole machine, or of one disk."""
    if disk is None:
        return Charts(choice, "/", f"/history?span={choice.key}")
    name = quote(disk, safe="")
    return Charts(choice, f"/disks/{name}/history", f"/history?span={choice.key}&disk={name}")


@lru_cache(maxsize=64)
def _text(machine: str, choice: Choice, disk: str | None, moment: int, notice: str) -> str:
    here = clock.moment()
    now = here.later((moment + 1) * FINEST_S - here.wall)
    history = None
    try:
        path = opening.path_of(machine)
        history = opening.look(path, lambda store: series.load(store, choice, now, disk))
    except HotsetError as error:
        notice = notice or f"the history cannot be read: {error}"
    return json.dumps(_draw(history or series.load(None, choice, now), notice))


def _draw(history: Series, notice: str) -> dict[str, object]:
    """Convert a series for the page's script: values by step, None where there is a gap."""
    step = history.choice.step_s
    shown = list(enumerate(history.events, 1))[-EVENTS_SHOWN:]
    html = template("history_told.html").render(
        found=history,
        labels=[label(disk) for disk in history.disks],
        events=list(reversed(shown)),
        more=len(history.events) - len(shown),
        notice=notice,
    )
    low, high = _AGAIN_S
    return {
        "begin": history.begin,
        "end": history.end,
        "again_s": min(high, max(low, step)),
        "at": [start + step / 2 for start in history.starts],
        "unknown": history.unknown,
        "tpm": [None if span is None else _round(span.amounts.tpm) for span in history.machine],
        "disks": [{"label": label(disk), "values": _values(disk.spans)} for disk in history.disks],
        "events": [{"number": number, "at": event.at} for number, event in shown],
        "html": html,
    }


def label(disk: DiskSeries) -> str:
    """A disk's name; of one that is gone also until when, as another one may bear its name."""
    if disk.present:
        return disk.name
    return f"{disk.name} (until {datetime.fromtimestamp(disk.last).astimezone():%d %b %H:%M})"


_POINT: Mapping[str, Callable[[Span], float | None]] = {
    "hit_ratio": lambda span: span.amounts.ratio,
    "reads": lambda span: span.amounts.reads,
    "writes": lambda span: span.amounts.writes,
    "read_bytes": lambda span: span.amounts.rate(span.amounts.read_bytes),
    "written_bytes": lambda span: span.amounts.rate(span.amounts.written_bytes),
    "read_ms": lambda span: span.amounts.read_ms,
    "write_ms": lambda span: span.amounts.write_ms,
    "size": lambda span: span.size,
    "used": lambda span: span.used,
    "dirty": lambda span: span.dirty,
}
"""Values of a span that the charts draw."""


def _values(spans: Sequence[Span | None]) -> dict[str, list[float | None]]:
    """A list for each, in the order of the spans; None where there is a gap."""
    return {
        name: [None if span is None else _round(value(span)) for span in spans]
        for name, value in _POINT.items()
    }


def _round(value: float | None) -> float | None:
    """To as many digits as a chart can show."""
    return None if value is None else float(f"{value:.5g}")


ROUTES = [page("/disks/{name}/history", _disk), page("/history", _series, watched=True)]

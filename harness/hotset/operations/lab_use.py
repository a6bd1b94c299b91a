"""Current use of the lab that is up, by any hotset on this computer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hotset.databases import connect
from hotset.databases.product import DsnError
from hotset.experiment.site import live
from hotset.experiment.site.live import Live
from hotset.lab import lab as labs

from . import audit
from .jobs import store as jobs

_HERE = ("localhost", "127.0.0.1", "::1", "")
_OF_DISKS = ("tier", "warmup")
"""First words of what works on the only disk of a machine, where none is named."""


def in_use() -> tuple[str, ...]:
    """List what runs in the lab now and would fail if it were taken down: each with who began it,
    and when. Empty: nothing does, or no lab is up."""
    lab, guest = live.find_live(), labs.guest_up(labs.lab_folder())
    if lab is None and guest is None:
        return ()
    uses = [
        f"{job.verb} (job {job.id}, since {_time(job.started)})"
        for job in jobs.running()
        if _is_in(job.words, job.values, lab, guest)
    ]
    uses += [
        f"{entry.what} ({entry.who}, since {_time(datetime.fromisoformat(entry.at))})"
        for entry in audit.running()
        if _is_in(entry.what.split(), entry.values, lab, guest)
    ]
    return tuple(uses)


def _is_in(
    words: tuple[str, ...] | list[str],
    values: Mapping[str, Any],
    lab: Live | None,
    guest: str | None,
) -> bool:
    """True if an operation works on the lab's disk or database, or in its machine."""
    places = {values.get("machine"), values.get("sample")}
    if words[0] == "lab":
        return False
    if guest is not None and guest in places:
        return True
    if lab is None:
        return False
    if "dsn" in values:
        return _is_its_server(str(values["dsn"]), lab)
    if words[0] not in _OF_DISKS or (places - {None, "local"}):
        return False
    return values.get("disk") in (None, lab.disk)


def _is_its_server(dsn: str, lab: Live) -> bool:
    """A DSN that says no port may mean the lab's: libpq decides then."""
    try:
        named, own = connect.database("postgres", dsn), connect.database("postgres", lab.dsn)
    except DsnError:
        return False
    here = {*_HERE, own.host}
    return named.port in (0, own.port) and named.host in here


def _time(at: datetime) -> str:
    return f"{at.astimezone():%H:%M:%S}"

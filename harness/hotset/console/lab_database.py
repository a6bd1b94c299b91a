"""The database of a lab on this computer, so that nobody has to type its address and password."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from hotset.experiment.site import live
from hotset.experiment.site.live import Live
from hotset.operations import table

from .web import console_of


async def find_lab(request: Request) -> Live | None:
    """The lab on this computer, where that is the machine the console manages."""
    if console_of(request).settings.machine != "local":
        return None
    return await run_in_threadpool(live.find_live)


def with_password(operation: str, values: Mapping[str, object]) -> dict[str, object]:
    """An operation's values, with the lab's own password if its database is named without one."""
    if "password" not in table.find(operation).fields or values.get("password"):
        return dict(values)
    lab = live.find_live() if values.get("dsn") else None
    if lab is None or values["dsn"] != lab.dsn:
        return dict(values)
    return {**values, "password": Path(lab.password_file).read_text().strip()}

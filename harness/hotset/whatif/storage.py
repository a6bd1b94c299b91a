"""How fast a run's slow storage is, or another one in its place."""

from __future__ import annotations

from typing import Any

from hotset.block import flashdev
from hotset.core.errors import RequestError
from hotset.core.machines.local import Local
from hotset.reports.model.document import RunDocument

from .demands import FlashPromise
from .prediction import flash_of, points_of


def own_iops(run: RunDocument) -> dict[int, float]:
    """Random reads of 8 KiB a second by queue depth that the model of a run's storage promises.

    :raises RequestError: the storage was no model.
    """
    storage = run.experiment.spec.get("storage")
    model = storage.get("model") if isinstance(storage, dict) else None
    if run.storage is None or run.storage.kind != "modelled" or not isinstance(model, str | dict):
        raise RequestError(
            f"run {run.run} did not measure the IOPS of its slow storage by queue depth: give"
            " them, such as 1:126,16:850",
            field="storage_iops",
        )
    return read_promises(run, model)


def read_promises(run: RunDocument, model: Any) -> dict[int, float]:  # noqa: ANN401 - a name or JSON
    """Read a model's promise for a disk of the run's size."""
    assert run.storage is not None
    return points_of(_promise(model, run.storage.size_bytes))


def own_flash(run: RunDocument) -> FlashPromise | None:
    """Return the promise of the model of a run's flash; None where it was a device, whose latency
    at rest no run measures."""
    flash = run.experiment.spec.get("flash")
    if run.tier is None or not run.tier.emulated or not isinstance(flash, dict):
        return None
    model, size = flash.get("model"), flash.get("size")
    if flash.get("device") is not None or not isinstance(size, int):
        return None
    if not isinstance(model, str | dict):
        return None
    return flash_of(_promise(model, size))


def _promise(model: Any, size: int) -> dict[str, Any]:  # noqa: ANN401
    return flashdev.read_promise(Local(), model, ["--size", str(size)])

"""Current activity of hotset on this computer, by any user."""

from __future__ import annotations

from contextlib import suppress

from hotset.core import words
from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.lab import lab as labs
from hotset.lab import modelled_tier
from hotset.monitoring import top
from hotset.monitoring.top import DiskReading
from hotset.reports.analysis import units
from hotset.reports.archive import Archive, NoSuchRunError
from hotset.reports.model.document import RunDocument

from .jobs import store as jobs

_LOOKED_AT = 20
"""Newest runs among which one that goes on is looked for."""


def running() -> tuple[str, ...]:
    """List hotset's current work here: jobs with their latest value, and the lab's experiment."""
    lines = [
        f"{job.verb}  {job.progress or (job.messages[-1] if job.messages else 'starting')}"
        for job in jobs.running()
    ]
    standing = labs.status(labs.lab_folder())
    if standing.state == "running":
        lines.append(f"{standing.purpose}  {_experiment_under_way()}")
    return tuple(lines)


def _experiment_under_way() -> str:
    """Describe the progress of the newest experiment that goes on."""
    archive = Archive.default()
    for row in archive.listing(_LOOKED_AT):
        if row.state == "running":
            with suppress(NoSuchRunError):
                document = archive.load(row.run)
                if document.state == "running" and document.measurement is None and document.phases:
                    return _progress(document)
    return "beginning"


def _progress(document: RunDocument) -> str:
    text = f"run {document.run}: {document.phases[-1].name} {document.phases[-1].state}"
    repeats = [(arm.name, repeat) for arm in document.arms for repeat in arm.repeats]
    if repeats:
        name, last = repeats[-1]
        text += f", {name} {words.count(last.rate)} {units.find_unit(document).short}"
    return text


def disks(machine: Machine) -> list[DiskReading]:
    """The accelerated disks of a machine; of this computer, also the engine of a lab that is up."""
    readings = top.inspect(machine)
    if not isinstance(machine, Local):
        return readings
    folder = labs.lab_folder()
    if (lab := modelled_tier.serving(machine, folder)) is not None:
        about = f"{lab.mode}, {lab.policy}, the lab's"
        known = modelled_tier.identity(folder), lab.policy, lab.mode
        cache = lab.counters.total.bytes(lab.block)
        readings.append(
            DiskReading("lab", "userspace", about, lab.block, lab.counters, *known, cache)
        )
    return readings

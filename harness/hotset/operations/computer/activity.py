"""What hotset does on this computer now, whoever started it."""

from __future__ import annotations

from hotset.jobs import store as jobs
from hotset.lab import lab as labs
from hotset.reports.analysis import units
from hotset.reports.archive import Archive, NoSuchRunError
from hotset.reports.model import words


def running() -> tuple[str, ...]:
    """What hotset runs here now: jobs with their latest figure, and the lab's experiment."""
    lines = [
        f"{job.verb}  {job.progress or (job.said[-1] if job.said else 'starting')}"
        for job in jobs.running()
    ]
    standing = labs.status(labs.lab_folder())
    if standing.state == "running":
        lines.append(f"{standing.purpose}  {_newest_run()}")
    return tuple(lines)


def _newest_run() -> str:
    """What the newest run has come to, if it is not over."""
    try:
        document = Archive.default().load("last")
    except NoSuchRunError:
        return ""
    if document.state == "complete" or not document.phases:
        return "beginning"
    said = f"run {document.run}: {document.phases[-1].name} {document.phases[-1].state}"
    repeats = [(arm.name, repeat) for arm in document.arms for repeat in arm.repeats]
    if repeats:
        name, last = repeats[-1]
        said += f", {name} {words.count(last.rate)} {units.find_unit(document).short}"
    return said

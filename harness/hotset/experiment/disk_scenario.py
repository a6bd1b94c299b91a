"""One experiment on modelled disks, from its file to its record. A phase is what is measured on one
disk or array; its result is kept before the next begins."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing

from hotset.bench.disks import arrays, mounted_model, reread, serving_path
from hotset.block import flashdev
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.reports.archive import Archive
from hotset.reports.model import setup
from hotset.reports.model.disks import DiskResults, ServingPath, Way
from hotset.reports.model.document import RunDocument

from . import runner
from .file.disk_spec import ArraysTable, DiskSpec, RereadTable
from .journal import Journal


def run(
    spec: DiskSpec,
    archive: Archive,
    report: Reporter,
    resume: str | None = None,
    command: Sequence[str] = (),
) -> RunDocument:
    """Run an experiment and return its document.

    :param resume: id of a failed or interrupted run to go on with.
    :param command: the command line, to be kept with a new run.
    :raises RefusedError: a disk's model is not usable.
    :raises RootError: not root, whom the scenario takes.
    """
    local = Local()
    _check(local, spec)
    # At each start: a run may go on on another day, beside other things.
    paths = serving_path.measure(local, ways(spec), report)
    if resume:
        journal = Journal.resume(archive, spec, resume)
    else:
        journal = Journal.begin(archive, spec, command)
    report.say(f"run {journal.document.run}")
    try:
        journal.change(machine=_machine())
        done = {phase.name for phase in journal.document.phases}
        pending = [name for name in phases(spec) if name not in done]
        _keep(journal, DiskResults(scenario=spec.scenario, paths=paths))
        with closing(_measure(local, spec, pending, paths, report)) as results:
            for name in pending:
                with journal.phase(name):
                    _keep(journal, next(results))
        journal.finish()
    finally:
        journal.write_report()
    return journal.document


def ways(spec: DiskSpec) -> tuple[Way, ...]:
    """How the devices of a run are reached."""
    return reread.WAYS if spec.arrays is None else arrays.ways(arrays.parts(spec.arrays.search))


def phases(spec: DiskSpec) -> tuple[str, ...]:
    """Their names, in the order of a run."""
    if spec.reread is not None:
        return tuple(_phase(reread.name_of(model)) for model in spec.reread.models)
    assert spec.arrays is not None
    return tuple(part.name for part in arrays.parts(spec.arrays.search))


def _phase(disk: str) -> str:
    return f"reads of {disk}"


def _check(local: Local, spec: DiskSpec) -> None:
    """Refuse what can be refused before the run has a record."""
    if spec.arrays is not None:
        arrays.require(local, spec.arrays.load)
    if spec.reread is not None:
        mounted_model.require(local)
        for model in spec.reread.models:
            flashdev.read_promise(local, model, [])


def _machine() -> setup.Machine:
    host = runner.this_computer()
    return setup.Machine(
        kind="local",
        cores=host.cores,
        memory_bytes=host.memory_bytes,
        kernel=host.kernel,
        host=host,
    )


def _measure(
    local: Local,
    spec: DiskSpec,
    pending: Sequence[str],
    paths: Sequence[ServingPath],
    report: Reporter,
) -> Generator[DiskResults]:
    """Measure each of these phases."""
    if spec.reread is not None:
        return _rereads(local, spec.reread, pending, paths, report)
    assert spec.arrays is not None
    return _arrays(local, spec.arrays, pending, paths, report)


def _rereads(
    local: Local,
    want: RereadTable,
    pending: Sequence[str],
    paths: Sequence[ServingPath],
    report: Reporter,
) -> Generator[DiskResults]:
    models = [model for model in want.models if _phase(reread.name_of(model)) in pending]
    held = reread.hold(local, models, want.size, want.passes, want.seed, paths, report)
    with closing(held) as measured:
        for disk in measured:
            yield DiskResults(scenario="reread", disks=(disk,))


def _arrays(
    local: Local,
    want: ArraysTable,
    pending: Sequence[str],
    paths: Sequence[ServingPath],
    report: Reporter,
) -> Generator[DiskResults]:
    parts = [part for part in arrays.parts(want.search) if part.name in pending]
    return arrays.measure(local, parts, want.load, paths, report)


def _keep(journal: Journal, more: DiskResults) -> None:
    known = journal.document.disks or DiskResults(scenario=more.scenario)
    journal.change(disks=known.add(more))

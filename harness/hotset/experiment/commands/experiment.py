"""Run experiments: each is one TOML file, from baseline to report."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from hotset.core import fields
from hotset.core.errors import RequestError, ThresholdError
from hotset.core.extras import Extra
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    Lines,
    Lock,
    Nothing,
    Request,
    check_output,
    operation,
)
from hotset.core.rights import Right
from hotset.reports.archive import REPORT, Archive

from ..file import shipped
from .runs import RunResult

if TYPE_CHECKING:
    from hotset.reports.model.document import RunDocument

    from ..file.disk_spec import DiskSpec
    from ..file.spec import Spec

File = Annotated[
    fields.ReadFile,
    BeforeValidator(shipped.path_of),
    Field(description="The experiment's TOML file, or the name of one that comes with hotset."),
    Cli(argument=True, metavar="FILE|NAME"),
]
Set = Annotated[
    fields.Settings,
    Field(
        description="Replace a value of the experiment file, for instance tpcc.users=32."
        " Repeatable."
    ),
    Cli(metavar="KEY=VALUE"),
]
Resume = Annotated[
    fields.Word | None,
    Field(description="Resume a failed or interrupted run (id or 'last')."),
    Cli(metavar="RUN"),
]


Thresholds = Annotated[
    fields.Expressions | None,
    Field(
        description="Exit with code 5 unless this holds, such as 'factor>=5' or"
        " 'p95(accelerated)<20ms'; in addition to those in the file. Repeatable."
    ),
]


@operation(
    "experiment list",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetExperiment"),
    result="experiment.file.shipped:ShippedExperiments",
)
def list_shipped(request: Nothing, context: Context) -> shipped.ShippedExperiments:  # noqa: ARG001
    """List the experiments that come with hotset, to be run by their names."""
    return shipped.ShippedExperiments(experiments=shipped.known())


class Plan(Request):
    file: File
    set: Set = []


@operation(
    "experiment plan", Kind.JOB, Right.READ, ("Show", "HotsetExperiment"), extras=(Extra.BENCH,)
)
def plan(request: Plan, context: Context) -> Lines:
    """Print every command that the experiment would run, without running any."""
    from .. import disk_plan, plan
    from ..file.spec import Spec

    wanted = _read(Path(request.file), request.set, context)
    with redirect_stdout(io.StringIO()) as commands:
        if isinstance(wanted, Spec):
            plan.plan(wanted)
        else:
            disk_plan.plan(wanted)
    return Lines(tuple(commands.getvalue().splitlines()))


class Run(Request):
    file: File
    set: Set = []
    resume: Resume = None
    yes: Annotated[
        bool,
        Field(description="Allow overwriting data on the real disks that the experiment names."),
    ] = False
    threshold: Thresholds = None
    junit: fields.Junit = None


@dataclass(frozen=True, slots=True)
class Measured(RunResult):
    """A run that has just been measured: a threshold that it missed makes it a failure."""

    def failure(self) -> Exception | None:
        missed = [threshold.text for threshold in self.run.thresholds if not threshold.met]
        return ThresholdError("; ".join(missed)) if missed else None


@operation(
    "experiment run",
    Kind.JOB,
    Right.ADMIN,
    ("Invoke", "HotsetExperiment"),
    destroys=True,
    progress=True,
    lock=lambda request: Lock("lab"),  # noqa: ARG005
    extras=(Extra.BENCH, Extra.REPORT),
)
def run(request: Run, context: Context) -> Measured:
    """Run an experiment: baseline, warm-up, accelerated, all-flash, report.

    A file with a table of disks (reread, arrays) measures those, without a database.
    Exit code 5: the probe's hit ratio was too low, or a threshold was missed.
    """
    name = shipped.name_of(request.file)
    words = ("experiment", "run", name, *(("--yes",) if request.yes else ()))
    return _run(words, Path(request.file), request, request.yes, context)


class Demo(Request):
    set: Set = []
    resume: Resume = None
    threshold: Thresholds = None
    junit: fields.Junit = None


@operation(
    "demo",
    Kind.JOB,
    Right.OPERATE,
    ("Invoke", "HotsetDemo"),
    progress=True,
    lock=lambda request: Lock("lab"),  # noqa: ARG005
    extras=(Extra.BENCH, Extra.REPORT),
)
def demo(request: Demo, context: Context) -> Measured:
    """Run the demonstration that comes with hotset (`experiment run demo`)."""
    file = Path(shipped.path_of("demo"))
    return _run(("demo",), file, request, False, context)


def _run(
    words: tuple[str, ...], file: Path, request: Run | Demo, yes: bool, context: Context
) -> Measured:
    """:param words: the command as it was called, without what it replaces of the file."""
    from .. import disk_scenario
    from ..file.spec import Spec

    archive, wanted = Archive.default(), _read(file, request.set, context)
    command = ("hotset", *words, *(word for setting in request.set for word in ("--set", setting)))
    check_output(request.junit, "junit")
    if isinstance(wanted, Spec):
        document = _of_database(wanted, archive, request, yes, command, context)
    elif request.threshold:
        raise RequestError(
            f"{request.threshold[0]}: an experiment with [{wanted.scenario}] has no thresholds:"
            " leave it out",
            field="threshold",
        )
    else:
        document = disk_scenario.run(wanted, archive, context.report, request.resume, command)
    context.report.say(f"report: {archive.path(document.run) / REPORT}")
    if request.junit is not None:
        context.write(request.junit, _junit(document))
    return Measured(document)


def _of_database(
    wanted: Spec,
    archive: Archive,
    request: Run | Demo,
    yes: bool,
    command: tuple[str, ...],
    context: Context,
) -> RunDocument:
    from hotset.lab import doctor, lab

    from .. import runner

    limits = wanted.limits(request.threshold or ())
    doctor.require(lab.choose(wanted.machine.kind, wanted.tier_wanted))
    return runner.run(
        wanted,
        archive,
        context.report,
        request.resume,
        yes,
        command,
        limits,
        context.ask_for_name,
    )


def _read(file: Path, replaced: list[str], context: Context) -> Spec | DiskSpec:
    """The experiment; refused where it names a file that who asks may not name."""
    from ..file import spec

    wanted = spec.read_any(
        file, tuple(replaced), lambda files: context.require_files(files, "file")
    )
    context.require_files(wanted.files, "file")
    context.require_room(wanted.disk_bytes, "set")
    return wanted


def _junit(document: RunDocument) -> str:
    from hotset.bench.thresholds import Case, junit

    suite = f"hotset.experiment.{document.experiment.name}"
    cases = [
        Case(suite, threshold.threshold, threshold.text, threshold.met)
        for threshold in document.thresholds
    ]
    return junit(suite, cases, document.seconds)

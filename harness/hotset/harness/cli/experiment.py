"""``hotset demo``, ``hotset experiment plan|run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotset.cachelayer.paths import repository_file
from hotset.harness.cli.options import Format, FormatOption, QuietOption, SetOption
from hotset.harness.cli.runs import show_document

app = typer.Typer(help="Experiments: one TOML file each, run from baseline to report.",
                  no_args_is_help=True)  # fmt: skip

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The experiment's TOML file.")]
ResumeOption = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Go on with a failed or interrupted run (id or 'last')."),
]


@app.command("plan")
def plan_command(file: FileArgument, set_: SetOption = []) -> None:  # noqa: B006 - typer copies it
    """Print every command that running the experiment would run, and run none of them."""
    from hotset.harness import plan, spec

    plan.plan(spec.read(file, tuple(set_)))


@app.command("run")
def run_command(
    file: FileArgument,
    set_: SetOption = [],  # noqa: B006
    resume: ResumeOption = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Give up what lies on the real disks that it names."),
    ] = False,
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Run an experiment: baseline, warm-up, accelerated, all-flash, report."""
    words = ("experiment", "run", str(file), *(("--yes",) if yes else ()))
    _run(words, file, set_, resume, yes, format_, quiet)


def demo(
    set_: SetOption = [],  # noqa: B006
    resume: ResumeOption = None,
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Run the shipped demonstration experiment (experiments/demo.toml)."""
    file = repository_file("experiments/demo.toml")
    _run(("demo",), file, set_, resume, False, format_, quiet)


def _run(
    words: tuple[str, ...],
    file: Path,
    set_: list[str],
    resume: str | None,
    yes: bool,
    format_: Format,
    quiet: bool,
) -> None:
    """:param words: the verb as it was called, without what it replaces of the file."""
    from rich.console import Console

    from hotset.cachelayer import lab
    from hotset.harness import doctor, experiment, spec
    from hotset.harness.archive import REPORT, Archive
    from hotset.harness.progress import Reporter

    archive, wanted = Archive.default(), spec.read(file, tuple(set_))
    doctor.require(lab.choose(wanted.machine.kind, wanted.tier.wanted))
    command = ("hotset", *words, *(word for one in set_ for word in ("--set", one)))
    document = experiment.run(wanted, archive, Reporter(quiet), resume, yes, command)
    show_document(document, format_)
    if format_ is Format.TABLE and not quiet:
        page = archive.path(document.run) / REPORT
        Console(stderr=True, soft_wrap=True).print(f"\nreport: {page}", highlight=False)

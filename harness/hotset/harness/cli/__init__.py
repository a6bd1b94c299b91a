"""The command line: one thin file per verb.

A verb imports what it works with when it is called: `--help` waits for no chart and no SSH.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from importlib.metadata import version
from types import FrameType
from typing import Annotated, NoReturn

import typer

from hotset.harness import structured
from hotset.harness.cli import (
    console,
    database,
    disk,
    doctor,
    experiment,
    heat,
    jobs,
    lab,
    report,
    runs,
    tier,
    top,
    tpcc,
    tpch,
    warmup,
)
from hotset.harness.cli.codes import FAILED, INTERRUPTED, USAGE, code_of

app = typer.Typer(
    name="hotset",
    help="What does a flash cache in front of slow storage do for a SQL database? Build it, fill"
    " it, measure it. Exit codes: 0 ok, 2 usage, 3 something is missing here, 4 run failed,"
    " 5 threshold missed, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("demo")(experiment.demo)
app.add_typer(experiment.app, name="experiment")
app.add_typer(runs.app, name="runs")
app.add_typer(tpcc.app, name="tpcc")
app.add_typer(heat.app, name="heat")
app.add_typer(report.app, name="report")
app.add_typer(tier.app, name="tier")
app.add_typer(warmup.app, name="warmup")
app.add_typer(lab.app, name="lab")
app.add_typer(disk.app, name="disk")
app.add_typer(tpch.app, name="tpch")
app.add_typer(database.app, name="database")
app.add_typer(console.app, name="console")
app.add_typer(jobs.app, name="jobs")
app.command("top")(top.top)
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hotset {version('hotset')}")
        raise typer.Exit


@app.callback()
def _of_every_verb(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """The program's entry: runs a verb and turns every failure into one clear line and a code."""
    # Said explicitly: a shell's background job inherits an ignored SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_interrupted())
    except Exception as error:
        sys.exit(_explain(error))
    # What a verb leaves with (typer.Exit) comes back as the value of the call; so does an
    # interrupt, of which typer says nothing.
    if code == INTERRUPTED:
        _interrupted()
    sys.exit(code if isinstance(code, int) else 0)


def _interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    """SIGTERM ends a run in the same good order as Ctrl-C; a second one does not disturb that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _interrupted() -> int:
    _say("interrupted; what was made has been taken down")
    return INTERRUPTED


def _explain(error: Exception) -> int:
    usage = getattr(error, "show", None)
    if callable(usage):  # click's own usage errors print themselves
        if structured.wanted():
            structured.emit(error=_usage_text(error), field=_field_of(error))
        else:
            usage()
        return int(getattr(error, "exit_code", USAGE))
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            _say(f"{error.message}: {one}")
        return FAILED
    code = code_of(error)
    if code is not None:
        _say(str(error), type(error).__name__)
        for note in getattr(error, "__notes__", ()):
            _say(f"  {note}")
        return code
    if os.environ.get("HOTSET_DEBUG"):
        traceback.print_exception(error)
    _say(f"unexpected {type(error).__name__}: {error} (HOTSET_DEBUG=1 shows where)")
    return FAILED


def _field_of(error: Exception) -> str | None:
    """The option that a usage error is about, as a program names it."""
    parameter = getattr(error, "param", None)
    hint = getattr(error, "param_hint", None) or (parameter.opts[0] if parameter else None)
    return hint.lower().lstrip("-").replace("-", "_") if isinstance(hint, str) else None


def _usage_text(error: Exception) -> str:
    format_message = getattr(error, "format_message", None)
    return str(format_message() if callable(format_message) else error)


def _say(text: str, kind: str | None = None) -> None:
    """:param kind: the failure's name, for a program."""
    if structured.wanted():
        structured.emit(error=text, kind=kind)
    else:
        sys.stderr.write(f"hotset: {text}\n")

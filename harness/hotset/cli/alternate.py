"""``hotset runs alternate``: two states of a server, measured in turn."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.core.errors import RequestError, ThresholdError

from .options import PasswordFileOption

if TYPE_CHECKING:
    from hotset.reports.archive import Archive
    from hotset.reports.model.document import RunDocument

_OWN = ("--label", "--output")
"""Options of the command that are another's in each turn."""


def alternate(
    states: Annotated[
        list[str],
        typer.Argument(
            metavar="STATE STATE",
            help="What the two states are called, such as before and after: labels of runs, whose"
            " commands are given again.",
        ),
    ],
    like: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Give the command of this run in both states; default: that of the newest run"
            " with the state's label.",
        ),
    ] = None,
    times: Annotated[
        int, typer.Option(min=2, max=100, help="How often each state is measured.")
    ] = 3,
    switch: Annotated[
        Path | None,
        typer.Option(
            metavar="PROGRAM",
            help="Program that brings the server into a state; it gets the state's name. Without"
            " it, you are asked to do so at the terminal.",
        ),
    ] = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Measure two states of a server in turn, A B A B A B, and compare them.

    Runs of two days differ by their days; what is measured in turn does not. Before each run the
    server is brought into its state: by a program of yours, or by you. The runs are labelled with
    the state, -in-turn and the time. A run that fails ends it; what was measured is kept.
    """
    if len(set(states)) != 2 or len(states) != 2:
        raise RequestError(
            f"{' '.join(states)}: name two states, such as before after", field="states"
        )
    if switch is not None and not switch.is_file():
        raise RequestError(f"{switch} is no program", field="switch")
    commands = {state: _command(state, like) for state in states}
    # Of this call: what was measured in turn on another day is not pooled with it.
    labels = {state: f"{state}-in-turn-{time.strftime('%Y%m%d-%H%M%S')}" for state in states}
    for turn in range(1, times + 1):
        for state in states:
            typer.echo(f"turn {turn} of {times}: {state}", err=True)
            _bring_into(state, switch)
            _measure(commands[state], labels[state], password_file)
    _run("runs compare", list(labels.values()))


def _command(state: str, like: str | None) -> tuple[str, ...]:
    """The words of a run's command.

    :raises RequestError: there is no such run, or it was no measurement.
    """
    from hotset.reports.archive import Archive

    archive = Archive.default()
    run = archive.load(like) if like is not None else _newest(archive, state)
    if run.measurement is None:
        raise RequestError(
            f"run {run.run} is an experiment, which measures its arms in turn by itself: compare"
            f" them by `hotset runs show {run.run}`",
            field="states" if like is None else "like",
        )
    return run.command


def _newest(archive: Archive, label: str) -> RunDocument:
    labelled = (row.run for row in archive.listing() if row.label == label)
    run = next(labelled, None)
    if run is None:
        raise RequestError(
            f"no run is labelled {label}: name with --like the run whose command is to be given",
            field="states",
        )
    return archive.load(run)


def _bring_into(state: str, switch: Path | None) -> None:
    """
    :raises RequestError: the program failed, or nobody answered.
    """
    if switch is not None:
        code = subprocess.run([str(switch.absolute()), state], check=False).returncode
        if code:
            raise RequestError(
                f"{switch} {state} ended with code {code}: the server's state is not known",
                field="switch",
            )
        return
    typer.echo(f"Bring the server into the state {state}, then press Enter: ", nl=False, err=True)
    if not sys.stdin.readline():
        typer.echo(err=True)
        raise RequestError(
            "the question had no answer: name a program that brings the server into a state",
            field="switch",
        )


def _measure(command: tuple[str, ...], label: str, password_file: Path | None) -> None:
    """Give the command again. A threshold that is missed is a result, too."""
    _, first, second, *words = command
    own = {at + behind for at, word in enumerate(words) if word in _OWN for behind in (0, 1)}
    words = [word for at, word in enumerate(words) if at not in own]
    if password_file is not None:
        words += ["--password-file", str(password_file)]
    try:
        _run(f"{first} {second}", [*words, "--label", label])
    except ThresholdError as missed:
        typer.echo(f"note: {missed}", err=True)


def _run(name: str, words: list[str]) -> None:
    """A command of hotset's, in this process."""
    from hotset.operations import table

    from .generate import add

    app = typer.Typer(pretty_exceptions_enable=False)
    add(app, table.find(name))
    if code := app(words, standalone_mode=False):
        raise typer.Exit(code)

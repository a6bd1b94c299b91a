"""The command line: its commands are made from the table of operations.

An operation imports what it works with when it is called: `--help` waits for no chart and no SSH.
"""

from __future__ import annotations

import os
import pwd
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import takewhile
from pathlib import Path
from types import FrameType, ModuleType
from typing import Annotated, NoReturn

import typer

from hotset import __version__
from hotset.core import errors as wording
from hotset.core import extras, structured
from hotset.core.environment import hide_password
from hotset.core.errors import FAILED, INTERRUPTED, USAGE, HotsetError
from hotset.core.words import printable

from .groups import fill

COMPLETION = "_HOTSET_COMPLETE"


def create(words: Sequence[str] | None = None) -> typer.Typer:
    """The parser.

    :param words: the first of the command line: only the command they name is made, or those of
        the first, where they name none; None: all.
    """
    app = typer.Typer(
        name="hotset",
        help="Put a flash cache in front of slow storage, fill it, and measure what it"
        " does for your SQL database. Exit codes: 0 success, 2 wrong usage, 3"
        " something is missing here, 4 run failed, 5 threshold missed, 130"
        " interrupted.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback()(_of_every_command)
    fill(app, words)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hotset {__version__}")
        raise typer.Exit


def _of_every_command(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """The program's entry: runs a command; every failure becomes one clear line and a code."""
    # Said explicitly: a shell's background job inherits an ignored SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # An 8-bit locale has no bars: better a question mark than no result.
            stream.reconfigure(errors="replace")
    hide_password()
    _leave_out()
    try:
        arguments = _with_run(sys.argv[1:])
        words = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
        parser = create(_complete() if COMPLETION in os.environ else words)
        code = parser(arguments, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_interrupted())
    except Exception as error:
        sys.exit(_explain(extras.with_wording(error)))
    # What a command leaves with (typer.Exit) comes back as the value of the call; so does an
    # interrupt, of which typer says nothing.
    if code == INTERRUPTED:
        _interrupted()
    sys.exit(code if isinstance(code, int) else 0)


def _complete() -> list[str] | None:
    """The first word behind `hotset` that a shell wants completed on, once it is whole; None: that
    word itself is wanted."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = line.split()
    return words[1:2] if len(words) > 2 or (len(words) == 2 and line.endswith(" ")) else None


def _leave_out() -> None:
    """A third of the time of a help text would go into loading what typer never draws for hotset:
    Markdown, and tracebacks with their source in colours."""
    for name, wanted in (("rich.markdown", "Markdown"), ("rich.traceback", "Traceback")):
        empty = ModuleType(name)
        setattr(empty, wanted, object)
        sys.modules.setdefault(name, empty)


def _with_run(arguments: list[str]) -> list[str]:
    """``hotset report last`` is ``hotset report run last``.

    >>> _with_run(["report", "last"]), _with_run(["report", "--help"])
    (['report', 'run', 'last'], ['report', '--help'])
    """
    match arguments:
        case ["report", ("run" | "hit-ratio" | "history" | "metrics"), *_]:
            return arguments
        case ["report", name, *rest] if not name.startswith("-"):
            return ["report", "run", name, *rest]
    return arguments


def _interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    """SIGTERM ends a run in the same good order as Ctrl-C; a second one does not disturb that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _interrupted() -> int:
    _say("interrupted")
    return INTERRUPTED


def _explain(error: Exception) -> int:
    usage = getattr(error, "show", None)
    if callable(usage):  # click's own usage errors print themselves
        if structured.is_wanted():
            structured.emit(error=str(error), status=422)
        else:
            usage()
        return int(getattr(error, "exit_code", USAGE))
    if structured.is_wanted():
        return structured.emit_error(error)
    if isinstance(error, ExceptionGroup):
        for exception in error.exceptions:
            _say(f"{error.message}: {exception}")
        return FAILED
    if isinstance(error, HotsetError):
        _say(wording.of_command_line(error, _with_run(sys.argv[1:])))
        for note in getattr(error, "__notes__", ()):
            _say(f"  {note}")
        return error.exit_code
    if isinstance(error, PermissionError) and error.filename:
        _say(_of_another(Path(os.fsdecode(error.filename))))
        return FAILED
    if os.environ.get("HOTSET_DEBUG"):
        traceback.print_exception(error)
    _say(f"unexpected {type(error).__name__}: {error} (HOTSET_DEBUG=1 shows where)")
    return FAILED


def _of_another(path: Path) -> str:
    """Who has what may not be opened: after `sudo -E` it is root's, in the folder of a user."""
    with suppress(OSError, KeyError):
        owner, me = path.owner(), pwd.getpwuid(os.geteuid()).pw_name
        if owner != me:
            return (
                f"{path} may not be opened: it belongs to {owner}. If a command was run as {owner}"
                f" with your home (sudo -E), have it back: sudo chown -R {me} {path.parent}"
            )
    return f"{path} may not be opened: permission denied"


def _say(text: str) -> None:
    if structured.is_wanted():
        structured.emit(error=text)
    else:
        # Part of it may be another's, such as a server's refusal.
        shown = "\n".join(map(printable, text.split("\n")))
        sys.stderr.write(f"hotset: {shown}\n")

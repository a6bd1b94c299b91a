"""The command line: one thin file per verb, exit codes in one place.

==== ===========================================================
code meaning
==== ===========================================================
0    ok
2    wrong usage: flags, experiment file, unknown run
3    this computer lacks something; the message says what to do
4    the run failed: no result
5    a threshold was missed (probe hit ratio, calibration)
130  interrupted
==== ===========================================================
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

import typer

from hotset.cachelayer.machine import (
    CommandError,
    CommandTimeoutError,
    EnvironmentLacksError,
    MachineGoneError,
)
from hotset.cachelayer.takedown import BusyError
from hotset.cachelayer.tier import TierFailedError, WarmupFailedError
from hotset.harness.archive import NoSuchRunError
from hotset.harness.cli import disk, doctor, experiment, lab, runs
from hotset.harness.journal import ThresholdMissedError
from hotset.harness.spec import SpecError
from hotset.tpcc.database import DatabaseError
from hotset.tpcc.load import LoadFailed
from hotset.tpcc.record import RunFailed
from hotset.tpcc.schema import SetupError

USAGE, LACKS, FAILED, MISSED, INTERRUPTED = 2, 3, 4, 5, 130

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (SpecError, USAGE),
    (NoSuchRunError, USAGE),
    (EnvironmentLacksError, LACKS),
    (BusyError, LACKS),
    (ThresholdMissedError, MISSED),
    (CommandError, FAILED),
    (CommandTimeoutError, FAILED),
    (MachineGoneError, FAILED),
    (TierFailedError, FAILED),
    (WarmupFailedError, FAILED),
    (RunFailed, FAILED),
    (LoadFailed, FAILED),
    (SetupError, FAILED),
    (DatabaseError, FAILED),
)

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
app.add_typer(lab.app, name="lab")
app.add_typer(disk.app, name="disk")
app.command("doctor")(doctor.doctor)


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
        usage()
        return int(getattr(error, "exit_code", USAGE))
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            _say(f"{error.message}: {one}")
        return FAILED
    for kind, code in _CODES:
        if isinstance(error, kind):
            _say(str(error))
            for note in getattr(error, "__notes__", ()):
                _say(f"  {note}")
            return code
    if os.environ.get("HOTSET_DEBUG"):
        traceback.print_exception(error)
    _say(f"unexpected {type(error).__name__}: {error} (HOTSET_DEBUG=1 shows where)")
    return FAILED


def _say(text: str) -> None:
    sys.stderr.write(f"hotset: {text}\n")

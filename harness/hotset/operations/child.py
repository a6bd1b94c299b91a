"""``python -m hotset.operations.child``: one operation as a job's process.

It reads ``{"operation": …, "request": {…}}`` from its standard input, the only place where secrets
are; tells its progress on standard error; prints its result on standard output; and leaves its exit
code in the folder that HOTSET_JOB names, where it is also once the process that started it is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from hotset.core.errors import FAILED, INTERRUPTED, interruption_reason
from hotset.core.operation import Context
from hotset.core.paths import write_whole
from hotset.core.record import Result

from . import audit
from .jobs.store import CODE, ENDINGS, FIGURES, JOB_VARIABLE


def main() -> NoReturn:
    folder = Path(os.environ.pop(JOB_VARIABLE))
    code, why = FAILED, "it ended unexpectedly"
    try:
        # Said explicitly: a shell's background job inherits an ignored SIGINT.
        _handle(lambda: "")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
        code, why = _run(folder)
    except KeyboardInterrupt:
        code, why = INTERRUPTED, "interrupted"
    finally:
        # First how it ended, or it would be lost where the log cannot be written.
        write_whole(folder / CODE, f"{code}\n")
        audit.end(folder.name, "failed" if code else "done", why)
    sys.exit(code)


def _run(folder: Path) -> tuple[int, str]:
    """Its exit code, and why it failed."""
    from hotset.core import progress
    from hotset.core.progress import Reporter

    from . import remote, room, table

    guard = room.Guard()
    _handle(lambda: guard.why)
    result: Result | None = None
    try:
        task = json.load(sys.stdin)
        operation = table.find(task["operation"])
        # It was checked as JSON before it came here.
        request = operation.parse(task["request"], strict=False)
        context = Context(
            Reporter(),
            lambda text: progress.emit(say=text),
            require_files=remote.require_files,
            require_room=room.require_lab,
        )
        try:
            with room.guard_room(operation.name, dict(request), guard=guard):
                result = operation.function(request, context)
        except KeyboardInterrupt:
            if result is None or not guard.why:
                raise
            # It had ended by itself just before its guard would have.
        document = result.document()
        if document != {"lines": []}:
            print(json.dumps(document), flush=True)
        if figures := result.figures():
            write_whole(folder / FIGURES, json.dumps(dict(figures)))
        context.outcome(result)
    except KeyboardInterrupt as error:
        why = interruption_reason(error) or "interrupted"
        progress.emit(error=why)
        return INTERRUPTED, why
    except Exception as error:
        return progress.emit_error(error), str(error)
    return 0, ""


def _handle(why: Callable[[], str]) -> None:
    """SIGTERM ends it in the same good order as Ctrl-C; a second one does not disturb that.

    :param why: it is ended, where no user does it; empty: one does.
    """

    def interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
        for number in ENDINGS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt(*filter(None, (why(),)))

    for number in ENDINGS:
        signal.signal(number, interrupt)


if __name__ == "__main__":
    main()

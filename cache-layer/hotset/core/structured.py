"""Messages to a program that runs hotset (HOTSET_PROGRESS=json): JSON, one object a line.

The objects have ``at``, seconds since the start, and one of ``say``, ``task``, ``figure``,
``error`` (text) and ``tick`` (a second of TPC-C). Figures and ticks have ``done``, ``total``,
``unit`` and ``eta_s`` where these are known. An error that hotset foresees has a ``message`` of its
own, the ``field`` it is about, or null, the HTTP ``status`` and the ``type`` it is, and
``remedies``. They go to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any

from . import errors
from .errors import FAILED, HotsetError, field_of, remedies_of

_BEGUN = time.monotonic()


def is_wanted() -> bool:
    """True if a program reads the messages."""
    return os.environ.get("HOTSET_PROGRESS") == "json"


def emit(**fields: Any) -> None:  # noqa: ANN401 - what JSON has
    """Say one thing, at once."""
    line = json.dumps({"at": round(time.monotonic() - _BEGUN, 1), **fields}, ensure_ascii=False)
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def emit_error(error: BaseException) -> int:
    """Say why it failed; returns the exit code."""
    if isinstance(error, ExceptionGroup):
        for exception in error.exceptions:
            emit(error=f"{error.message}: {exception}")
        return FAILED
    if not isinstance(error, HotsetError):
        emit(error=f"unexpected {type(error).__name__}: {error}")
        return FAILED
    emit(
        error=errors.of_api(error),
        message=str(error),
        field=field_of(error),
        status=error.http_status,
        type=errors.type_of(error),
        remedies=[asdict(remedy) for remedy in remedies_of(error)],
    )
    for note in getattr(error, "__notes__", ()):
        emit(error=str(note))
    return error.exit_code

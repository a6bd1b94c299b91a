"""What is said to a program that runs a verb (HOTSET_PROGRESS=json): JSON, one object a line.

The objects have ``at``, seconds since the start, and one of ``say``, ``task``, ``figure``,
``error`` (text) and ``tick`` (a second of TPC-C). An error may have the ``kind`` of failure and the
``field`` it is about, or null. They go to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

_BEGUN = time.monotonic()


def wanted() -> bool:
    """Whether a program reads what is said."""
    return os.environ.get("HOTSET_PROGRESS") == "json"


def emit(**fields: Any) -> None:  # noqa: ANN401 - what JSON has
    """Say one thing, at once."""
    line = json.dumps({"at": round(time.monotonic() - _BEGUN, 1), **fields}, ensure_ascii=False)
    sys.stderr.write(line + "\n")
    sys.stderr.flush()

"""Standard output for people: as wide as their terminal, and as wide as need be where there is
none."""

from __future__ import annotations

import os

from rich.console import Console

_LEAST_COLUMNS = 80
"""Below this, tables cut numbers off; lines that are too long merely wrap."""
_IN_A_PIPE = 10_000
"""No table is wider: a file or the next program gets times and paths whole."""


def screen() -> Console:
    """The width of a pipe or a file is no terminal's, unless ``COLUMNS`` says one."""
    console = Console(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        console.width = max(console.width, _LEAST_COLUMNS)
    else:
        console.width = _IN_A_PIPE
    return console

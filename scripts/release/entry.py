"""How a process of hotset starts where no installer of Python's has written a script for it: the
one text, of which the packages' launcher and the container's are made."""

from __future__ import annotations

from pathlib import Path

_START = """
# multiprocessing imports this file into every worker that it spawns, to be no program there.
if __name__ == "__main__":
    from hotset.cli import main

    main()
"""


def in_package(described: Path) -> str:
    """The packages': it first makes sure of the Python that it has.

    :param described: the package's folder in `packaging/`.
    """
    return (described / "launcher").read_text(encoding="utf-8") + _START


def in_container() -> str:
    """The container's, whose Python is the only one there."""
    return f"#!/usr/bin/python3\n{_START}"

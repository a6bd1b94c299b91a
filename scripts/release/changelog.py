"""The changelog, from the subjects of commits."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_TAG = re.compile(r"tag: v(\d[^,]*)")


def changelog(root: Path, version: str) -> str:
    """Each version and what changed for it, the newest first. A version begins after the tag
    (``v0.1.0``) of the one before.

    :param version: a version that has no tag yet.
    """
    argv = ["git", "log", "--no-merges", "--format=%D%x1f%cs%x1f%s"]
    output = subprocess.run(argv, check=True, cwd=root, stdout=subprocess.PIPE, text=True).stdout
    lines, name = ["# Changes"], version
    for number, line in enumerate(output.splitlines()):
        tags, day, subject = line.split("\x1f")
        tagged = _TAG.search(tags)
        if tagged or number == 0:
            name = tagged[1] if tagged else name
            lines += ["", f"## {name} ({day})", ""]
        lines.append(f"- {subject}")
    return "\n".join(lines) + "\n"

"""Files of this computer as block devices."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from hotset.cachelayer.local import Local
from hotset.cachelayer.takedown import Takedown
from hotset.cachelayer.units import Bytes


def attach(
    local: Local,
    file: Path,
    takedown: Takedown,
    *,
    readonly: bool = False,
    part: tuple[Bytes, Bytes] | None = None,
) -> PurePosixPath:
    """A loop device over a file, with direct I/O, so that memory does not answer for it.

    :param part: offset and size of the part to show; the whole file by default.
    """
    argv = ["losetup", "--find", "--show", "--direct-io=on"]
    if readonly:
        argv.append("--read-only")
    if part is not None:
        argv += [f"--offset={int(part[0])}", f"--sizelimit={int(part[1])}"]
    # Found again by its file: written down before it is made, so that neither a kill nor Ctrl-C
    # in between leaves it.
    takedown.command(f"release the loop devices of {file.name}", ["sh", "-c", _RELEASE, "sh",
                                                                  str(file)])  # fmt: skip
    device = local.run([*argv, str(file)]).stdout.strip()
    return PurePosixPath(device)


# $1: the file. A path that is gone is shown with "(deleted)" behind it, and still found by name.
_RELEASE = """losetup --list --noheadings --output NAME,BACK-FILE |
while read -r device file; do
    case "$file" in "$1"|"$1 (deleted)") losetup --detach "$device" ;; esac
done"""

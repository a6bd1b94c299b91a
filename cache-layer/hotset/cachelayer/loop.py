"""Files of this computer as block devices."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from hotset.cachelayer.local import Local
from hotset.cachelayer.takedown import Takedown


def attach(
    local: Local, file: Path, takedown: Takedown, *, readonly: bool = False
) -> PurePosixPath:
    """A loop device over a file, with direct I/O, so that memory does not answer for it."""
    argv = ["losetup", "--find", "--show", "--direct-io=on"]
    if readonly:
        argv.append("--read-only")
    # By its file, since it has no name yet: written down before it is made, so that neither a
    # kill nor Ctrl-C in between leaves it. Afterwards by its name, since a file may be renamed.
    release = ["sh", "-c", _RELEASE, "sh", str(file)]
    takedown.leftover(f"release the loop devices of {file.name}", release)
    try:
        device = local.run([*argv, str(file)]).stdout.strip()
        takedown.command(f"release {device}", ["losetup", "--detach", device])
    except BaseException:
        local.run(release, check=False)
        raise
    return PurePosixPath(device)


# $1: the file. A path that is gone is shown with "(deleted)" behind it, and still found by name.
_RELEASE = """losetup --list --noheadings --output NAME,BACK-FILE |
while read -r device file; do
    case "$file" in "$1"|"$1 (deleted)") losetup --detach "$device" ;; esac
done"""

"""Keeps needrestart, which restarts services after packages were upgraded (on Ubuntu without a
question), away from hotset's: a restart takes the disk away from under its users.

Its configuration is Perl, and it reads every file of the folder (``needrestart.conf``).
"""

from __future__ import annotations

from pathlib import PurePosixPath

from .base import Machine

CONF = PurePosixPath("/etc/needrestart/conf.d/hotset.conf")
_MARK = "# Written by hotset, which removes it with its last cache engine."
RULE = """\
# A cache engine that is restarted takes its disk away from under the file system on it.
$nrconf{override_rc}->{qr(^hotset-(engine|tier)-)} = 0;
"""
"""The same rule as in hotset's packages."""
TEXT = f"{_MARK}\n{RULE}"
# $1: the file, $2: its first line.
_REMOVE = """
! ls /etc/systemd/system/hotset-engine-*.service > /dev/null 2>&1 || exit 0
IFS= read -r first 2> /dev/null < "$1" && [ "$first" = "$2" ] || exit 0
rm -f "$1" && rmdir --ignore-fail-on-non-empty "${1%/*}" "${1%/*/*}"
"""


def install(machine: Machine) -> None:
    """Write the file, also where needrestart may come later; somebody else's stays as it is."""
    content = machine.run(["cat", str(CONF)], check=False).stdout
    if not content or (content != TEXT and content.startswith(_MARK)):
        machine.replace(TEXT, CONF)


def remove(machine: Machine) -> None:
    """Remove the file with the last unit of an engine, if hotset wrote it."""
    machine.run(["sh", "-c", _REMOVE, "hotset-needrestart", str(CONF), _MARK])

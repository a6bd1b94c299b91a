"""Files, and stretches of devices, as block devices."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from hotset.core.clock import BOOT_ID
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Bytes

FOLDER = PurePosixPath("/dev/hotset")
"""Names of the block devices that the tiers in user space have: links to loop devices, whose
numbers may change."""

SEQUENCE = """\
sequence() {
    cat "/sys/class/block/${1#/dev/}/diskseq" 2> /dev/null
}"""
"""A function for shell scripts: the kernel's number of what a device's name stands for now (since
Linux 5.15), never given again before the next start of the computer."""

# $1: the name; $2: the device or file; $3: the first byte. The kernel gives the number of a device
# that was detached to the next caller: a name counts only while the same file is behind it.
_OURS = """
ours() {
    at=/sys/class/block/$(basename "$(readlink "$1")")/loop
    read -r file < "$at/backing_file" && read -r first < "$at/offset" || return 1
    [ "${file% (deleted)}" = "$(readlink -m "$2")" ] && [ "$first" = "$3" ] &&
        [ "$(cat "$at/autoclear")" = 0 ]
} 2> /dev/null
"""
_IS_ATTACHED = f"""{_OURS}
ours "$@"
"""
_DETACH = f"""{_OURS}
ours "$@" && loop=$(readlink "$1")
rm -f "$1"
[ -z "${{loop-}}" ] || losetup --detach "$loop"
"""


NO_MOUNTS = (
    "root may not mount anything: a container has to be allowed that (docker run --device /dev/fuse"
    " --cap-add SYS_ADMIN --security-opt apparmor=unconfined)"
)


def require(machine: Machine) -> None:
    """:raises PrerequisiteMissingError: the machine has no loop devices."""
    if not has_device(machine, "/dev/loop-control", "loop"):
        raise PrerequisiteMissingError(
            f"{machine.kind} has no loop devices (/dev/loop-control): load the kernel's module"
            " (modprobe loop); a container has to be given them"
        )
    # The kernel makes another where none is free, but no node of it in a container's own /dev.
    free = machine.run(["losetup", "--find"], check=False)
    node = free.stdout.strip() or "none"
    if free.rc != 0 or machine.run(["test", "-b", node], check=False).rc != 0:
        raise PrerequisiteMissingError(
            f"{machine.kind} has no node of a free loop device ({free.stderr.strip() or node}): a"
            " container has to be given them all, with the host's /dev"
        )


def has_device(machine: Machine, device: str, module: str) -> bool:
    """True if a kernel device exists, or appears once its module is loaded."""
    script = '[ -c "$1" ] || modprobe "$2" 2> /dev/null; [ -c "$1" ]'
    return machine.run(["sh", "-c", script, "hotset-device", device, module], check=False).rc == 0


def may_mount(machine: Machine) -> bool:
    """True if root may mount anything there: in most containers not."""
    attempt = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"]  # noqa: S108 - its own
    return machine.run(attempt, check=False).rc == 0


def is_attached(machine: Machine, name: PurePosixPath, device: PurePosixPath, start: Bytes) -> bool:
    """True if ``hotset-boot`` made the name, of that stretch, and its device still exists."""
    return machine.run(_argv(_IS_ATTACHED, name, device, start), check=False).rc == 0


def detach(machine: Machine, name: PurePosixPath, device: PurePosixPath, start: Bytes) -> None:
    """Remove a name that ``hotset-boot`` made, and its device if that is still there."""
    machine.run(_argv(_DETACH, name, device, start))


def _argv(script: str, name: PurePosixPath, device: PurePosixPath, *numbers: Bytes) -> list[str]:
    words = [str(name), str(device), *(str(int(number)) for number in numbers)]
    return ["sh", "-c", script, "hotset-loop", *words]


def attach(local: Local, file: Path, cleanup: Cleanup, *, readonly: bool = False) -> PurePosixPath:
    """A loop device over a file, with direct I/O, so that memory does not answer for it."""
    argv = ["losetup", "--find", "--show", "--direct-io=on"]
    if readonly:
        argv.append("--read-only")
    # By its file, since it has no name yet: written down before it is made, so that neither a
    # kill nor Ctrl-C in between leaves it. Afterwards by its name and what is behind it: a file may
    # be renamed, and the next to ask may get the name of a device that is gone.
    release = ["sh", "-c", _RELEASE, "sh", str(file)]
    cleanup.leftover(f"release the loop devices of {file.name}", release)
    try:
        device = local.run([*argv, str(file)]).stdout.strip()
        same = ["sh", "-c", _RELEASE_SAME, "sh", device, identity(local, PurePosixPath(device))]
        cleanup.command(f"release {device}", same)
    except BaseException:
        local.run(release, check=False)
        raise
    return PurePosixPath(device)


def identity(machine: Machine, device: PurePosixPath) -> str:
    """Name what a block device is; no other has that name, whatever is behind the device later."""
    return machine.run(["sh", "-c", _IDENTITY, "sh", str(device)]).stdout.strip()


# $1: the device, or a link to it. Names what is behind it for good.
_IDENTITY = f"""{SEQUENCE}
cat {BOOT_ID}
sequence "$(readlink -f "$1")" || :"""
# $2: what was behind it.
_RELEASE_SAME = f"""found=$(
{_IDENTITY}
)
[ "$found" != "$2" ] || losetup --detach "$1"
"""
# $1: the file. A path that is gone is shown with "(deleted)" behind it, and still found by name.
_RELEASE = """losetup --list --noheadings --output NAME,BACK-FILE |
while read -r device file; do
    case "$file" in "$1"|"$1 (deleted)") losetup --detach "$device" ;; esac
done"""

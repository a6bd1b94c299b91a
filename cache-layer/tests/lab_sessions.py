"""A second session with an iSCSI disk, another host or a second path of this one, and what a host
may do and reserve by a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine


@contextmanager
def second_session(
    machine: Machine, initiator: str | None = None, name: str = "other"
) -> Iterator[PurePosixPath]:
    """One more session with the target that is logged in to; yields the disk that comes by it.

    :param initiator: the name of the host that logs in; None: this host's own.
    :param name: of the session; those of one time have different ones.
    """
    interface = ["iscsiadm", "-m", "iface", "-I", name]
    session = machine.run(["iscsiadm", "-m", "session"]).stdout.split()
    target, portal = session[3], session[2].partition(",")[0]
    node = ["iscsiadm", "-m", "node", "-T", target, "-p", portal, "-I", name]
    machine.run([*interface, "--op=new"], check=False)  # it may be there of the last time
    if initiator:
        value = ["-n", "iface.initiatorname", "-v", initiator]
        machine.run([*interface, "--op=update", *value])
    machine.run([*node, "--op=new"])
    before = _scsi_disks(machine)
    machine.run([*node, "--login"])
    try:
        machine.run(["udevadm", "settle"])
        (disk,) = _scsi_disks(machine) - before
        yield PurePosixPath(disk)
    finally:
        machine.run([*node, "--logout"])


def writes(machine: Machine, disk: PurePosixPath | str) -> bool:
    """Whether a block can be written behind the file system."""
    argv = ["dd", "if=/dev/zero", f"of={disk}", "bs=4k", "count=1", "seek=15800", "oflag=direct"]
    return machine.run([*argv, "conv=notrunc"], check=False).rc == 0


def persist(machine: Machine, disk: PurePosixPath | str, *words: str) -> None:
    """What a host reserves by a disk, after what that has to tell it first."""
    machine.run(["sg_persist", "--in", "--read-keys", str(disk)], check=False)
    machine.run(["sg_persist", "--out", *words, str(disk)])


def keys(machine: Machine, disk: PurePosixPath | str) -> str:
    """The keys that are registered with it."""
    argv = ["sh", "-c", f"sg_persist --in --read-keys {disk} | grep -o ' 0x.*' || :"]
    return machine.run(argv).stdout


def _scsi_disks(machine: Machine) -> set[str]:
    listed = machine.run(["lsblk", "--scsi", "--noheadings", "--paths", "--output", "NAME"]).stdout
    return set(listed.split())

"""A second session with an iSCSI disk: another host, or a second path of this one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from hotset.cachelayer.hosts.base import Machine


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


def _scsi_disks(machine: Machine) -> set[str]:
    listed = machine.run(["lsblk", "--scsi", "--noheadings", "--paths", "--output", "NAME"]).stdout
    return set(listed.split())

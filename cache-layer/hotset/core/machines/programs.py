"""Every external program hotset runs, declared once.

``Machine.run`` refuses a program that is not listed here; ``hotset doctor`` and the set-up script
are derived from this list. ``host`` is where hotset itself runs, ``vm`` the same where it runs a
virtual machine, ``uml`` where it runs User-Mode Linux, ``iscsi`` where it serves the slow disk to
a kernel; ``target`` is the machine that holds the tier and the database (the frozen image of the
lab carries all of those already).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Place = Literal["host", "vm", "uml", "iscsi", "target"]


@dataclass(frozen=True, slots=True)
class Program:
    """One external program: the Debian package that brings it and what hotset does with it."""

    name: str
    package: str
    purpose: str
    places: tuple[Place, ...] = ("target",)


_HOST: tuple[Place, ...] = ("host",)
_VM: tuple[Place, ...] = ("vm",)
_UML: tuple[Place, ...] = ("uml",)
_GUEST: tuple[Place, ...] = ("vm", "uml")
_ISCSI: tuple[Place, ...] = ("iscsi",)
_BOTH: tuple[Place, ...] = ("host", "target")

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        # the lab: image and virtual machine
        Program("mmdebstrap", "mmdebstrap", "build the lab's frozen Debian image", _HOST),
        Program("mke2fs", "e2fsprogs", "make file systems and the image's root disk", _BOTH),
        Program("qemu-system-x86_64", "qemu-system-x86", "run the lab's virtual machine", _VM),
        Program("apt-get", "apt", "fetch and verify the kernel of User-Mode Linux", _UML),
        Program("dpkg-deb", "dpkg", "unpack the kernel of User-Mode Linux", _UML),
        Program("ssh", "openssh-client", "open a shell in the lab", _GUEST),
        Program("unshare", "util-linux", "give the lab's machines namespaces of their own", _HOST),
        Program("ip", "iproute2", "set up the lab's network in a namespace of its own", _GUEST),
        # slow storage
        Program("flashdev", "built by `make build`", "run the modelled disk", _BOTH),
        Program("hotset-engine", "built by `make build`", "run the cache, copy disks", _BOTH),
        Program("hotset-boot", "built by `make build`", "decide what a boot does", _BOTH),
        Program("env", "coreutils", "set a program's environment", _BOTH),
        Program("nsenter", "util-linux", "enter the namespaces of the lab", _HOST),
        Program("fusermount3", "fuse3", "mount and release the modelled disk", _HOST),
        Program("tgtd", "tgt", "export the slow disk over iSCSI", _ISCSI),
        Program("tgtadm", "tgt", "control the iSCSI target", _ISCSI),
        Program("cp", "coreutils", "restore a database image", _BOTH),
        Program("truncate", "coreutils", "make sparse backing files", _BOTH),
        # the tier, on the machine that has it
        Program("modprobe", "kmod", "load dm-cache and iscsi_tcp"),
        Program("udevadm", "udev", "wait for device nodes"),
        Program("iscsid", "open-iscsi", "keep the iSCSI session alive"),
        Program("iscsiadm", "open-iscsi", "log into the slow disk"),
        Program("sg_persist", "sg3-utils", "keep other hosts from writing to an origin"),
        Program("dmsetup", "dmsetup", "make, read and remove device-mapper devices"),
        Program("cache_dump", "thin-provisioning-tools", "read dm-cache metadata"),
        Program("cache_restore", "thin-provisioning-tools", "write dm-cache metadata"),
        Program("cache_check", "thin-provisioning-tools", "check dm-cache metadata"),
        Program("cache_repair", "thin-provisioning-tools", "repair dm-cache metadata"),
        Program("make-bcache", "bcache-tools", "format bcache's devices"),
        Program("bcache-super-show", "bcache-tools", "read bcache's superblocks"),
        Program("smartctl", "smartmontools", "read how worn a flash is"),
        Program("nvme", "nvme-cli", "read how worn a flash is, where there is no smartctl"),
        Program("wipefs", "util-linux", "find out what a device holds before it is used"),
        Program("lsblk", "util-linux", "find out who uses a device"),
        Program("blockdev", "util-linux", "read the sizes of block devices, flush their buffers"),
        Program("losetup", "mount", "use a file as a block device", _BOTH),
        Program("mount", "mount", "mount file systems", _BOTH),
        Program("umount", "mount", "unmount file systems", _BOTH),
        Program("findmnt", "util-linux", "find what is mounted where"),
        Program("filefrag", "e2fsprogs", "map the extents of a file (FIEMAP)"),
        Program("debugfs", "e2fsprogs", "find journal and metadata blocks of an ext4 file system"),
        Program("dumpe2fs", "e2fsprogs", "find free space in an ext4 file system"),
        Program("blkid", "util-linux", "identify the file system on a device"),
        Program("mkfs.xfs", "xfsprogs", "make file systems"),
        Program("xfs_db", "xfsprogs", "find the log and the allocation groups of an xfs"),
        Program("dd", "coreutils", "copy sequentially"),
        Program("cmp", "diffutils", "compare sampled blocks", _BOTH),
        Program("find", "findutils", "list a database's files"),
        Program("fio", "fio", "measure the slow disk"),
        Program("sync", "coreutils", "write everything back", _BOTH),
        # the database
        Program("runuser", "util-linux", "run the server as its own user"),
        Program("initdb", "postgresql", "make a PostgreSQL cluster"),
        Program("pg_ctl", "postgresql", "start and stop the PostgreSQL server"),
        Program("psql", "postgresql-client", "set the server's password over its own socket"),
        Program("pg_restore", "postgresql-client", "load a database of one's own"),
        # small tools of every Debian system
        Program("sh", "dash", "sample counters and CPU"),
        Program("setsid", "util-linux", "never leave a device suspended"),
        Program("timeout", "coreutils", "wait for no engine that hangs"),
        Program("flock", "util-linux", "one operation at a time on a disk"),
        Program("cat", "coreutils", "read /proc, /sys and small files"),
        Program("ls", "coreutils", "look for devices"),
        Program("test", "coreutils", "look for files"),
        Program("stat", "coreutils", "find the device of a file or device node"),
        Program("dmesg", "util-linux", "read the kernel's log"),
        Program("grep", "grep", "read what bcache is set to"),
        Program("id", "coreutils", "check that hotset is root there"),
        Program("systemctl", "systemd", "activate tiers at boot, warm up at set times"),
        Program("systemd-analyze", "systemd", "check units and times"),
        Program("mkdir", "coreutils", "make folders"),
        Program("rm", "coreutils", "remove files hotset made"),
        Program("rmdir", "coreutils", "stop the kernel's counting per region"),
        Program("tee", "coreutils", "write to files of the kernel"),
        Program("readlink", "coreutils", "resolve a device's name"),
        Program("chown", "coreutils", "give a folder to the server's user"),
        Program("ln", "coreutils", "spread files over several disks"),
        Program("uname", "coreutils", "read the kernel's version"),
        Program("nproc", "coreutils", "count cores"),
    )
}

_LACKING = 'for one; do command -v "$one" > /dev/null || echo "$one"; done'


def lacking_argv(names: Iterable[str]) -> list[str]:
    """The command that prints which of these programs a machine lacks.

    >>> lacking_argv(["dmsetup"])[3:]
    ['hotset-lacking', 'dmsetup']
    """
    return ["sh", "-c", _LACKING, "hotset-lacking", *names]

"""Every external program hotset runs, declared once.

``Machine.run`` refuses a program that is not listed here; ``hotset doctor`` and the set-up script
are derived from this list. ``host`` is where hotset itself runs, ``vm`` the same where it runs a
virtual machine, ``iscsi`` where it serves the slow disk to a kernel; ``target`` is the machine that
holds the tier and the database (the frozen image of the lab carries all of those already).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = Literal["host", "vm", "iscsi", "target"]


@dataclass(frozen=True, slots=True)
class Program:
    """One external program: the Debian package that brings it and what hotset does with it."""

    name: str
    package: str
    purpose: str
    places: tuple[Place, ...] = ("target",)


_HOST: tuple[Place, ...] = ("host",)
_VM: tuple[Place, ...] = ("vm",)
_ISCSI: tuple[Place, ...] = ("iscsi",)
_BOTH: tuple[Place, ...] = ("host", "target")

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        # the lab: image and virtual machine
        Program("mmdebstrap", "mmdebstrap", "build the lab's frozen Debian image", _HOST),
        Program("mke2fs", "e2fsprogs", "make file systems and the image's root disk", _BOTH),
        Program("qemu-system-x86_64", "qemu-system-x86", "run the lab's virtual machine", _VM),
        Program("ssh", "openssh-client", "open a shell with `hotset lab shell`", _VM),
        Program("unshare", "util-linux", "enter the image on this computer's own kernel", _HOST),
        Program("ip", "iproute2", "the lab's tap device in a network namespace", _VM),
        # slow storage
        Program("flashdev", "built by `make build`", "the modelled disk", _BOTH),
        Program("env", "coreutils", "set a daemon's environment", _HOST),
        Program("nsenter", "util-linux", "enter the namespaces of the lab", _HOST),
        Program("fusermount3", "fuse3", "mount and release the modelled disk", _HOST),
        Program("tgtd", "tgt", "export the slow disk over iSCSI", _ISCSI),
        Program("tgtadm", "tgt", "steer the iSCSI target", _ISCSI),
        Program("cp", "coreutils", "restore a database image", _BOTH),
        Program("truncate", "coreutils", "make sparse backing files", _BOTH),
        # the tier, on the machine that has it
        Program("modprobe", "kmod", "load dm-cache and iscsi_tcp"),
        Program("udevadm", "udev", "wait for device nodes"),
        Program("iscsid", "open-iscsi", "keep the iSCSI session alive"),
        Program("iscsiadm", "open-iscsi", "log into the slow disk"),
        Program("dmsetup", "dmsetup", "make, read and remove device-mapper devices"),
        Program("cache_dump", "thin-provisioning-tools", "read dm-cache metadata"),
        Program("cache_restore", "thin-provisioning-tools", "write dm-cache metadata"),
        Program("cache_check", "thin-provisioning-tools", "check dm-cache metadata"),
        Program("cache_repair", "thin-provisioning-tools", "repair dm-cache metadata"),
        Program("make-bcache", "bcache-tools", "format bcache's devices"),
        Program("bcache-super-show", "bcache-tools", "look at bcache's superblocks"),
        Program("wipefs", "util-linux", "what lies on a device that is to be used"),
        Program("lsblk", "util-linux", "who uses a device"),
        Program("blockdev", "util-linux", "sizes and buffers of block devices"),
        Program("losetup", "mount", "a file as a block device", _BOTH),
        Program("mount", "mount", "mount file systems", _BOTH),
        Program("umount", "mount", "unmount file systems", _BOTH),
        Program("filefrag", "e2fsprogs", "extents of a file (FIEMAP)"),
        Program("debugfs", "e2fsprogs", "journal and metadata blocks of an ext4 file system"),
        Program("dumpe2fs", "e2fsprogs", "where an ext4 file system has room"),
        Program("blkid", "util-linux", "which file system a device has"),
        Program("mkfs.xfs", "xfsprogs", "make file systems"),
        Program("xfs_db", "xfsprogs", "where an xfs has its log and groups"),
        Program("dd", "coreutils", "sequential copies"),
        Program("cmp", "diffutils", "compare sampled blocks", _BOTH),
        Program("find", "findutils", "list a database's files"),
        Program("fio", "fio", "measure the slow disk"),
        Program("sync", "coreutils", "write everything back", _BOTH),
        # the database
        Program("runuser", "util-linux", "run the server as its own user"),
        Program("initdb", "postgresql", "make a PostgreSQL cluster"),
        Program("pg_ctl", "postgresql", "start and stop the PostgreSQL server"),
        Program("psql", "postgresql-client", "set the server's password over its own socket"),
        # small tools of every Debian system
        Program("sh", "dash", "the sampler of counters and CPU"),
        Program("cat", "coreutils", "read /proc, /sys and small files"),
        Program("ls", "coreutils", "look for devices"),
        Program("test", "coreutils", "look for files"),
        Program("stat", "coreutils", "which device a file or device node is"),
        Program("dmesg", "util-linux", "the kernel's last words"),
        Program("id", "coreutils", "see that hotset is root there"),
        Program("systemctl", "systemd", "activate tiers at boot, warm up at set times"),
        Program("systemd-analyze", "systemd", "check units and times"),
        Program("mkdir", "coreutils", "make folders"),
        Program("rm", "coreutils", "remove files hotset made"),
        Program("rmdir", "coreutils", "end the kernel's counting per region"),
        Program("tee", "coreutils", "write to files of the kernel"),
        Program("readlink", "coreutils", "which device a name stands for"),
        Program("mv", "coreutils", "put a finished file in its place"),
        Program("chown", "coreutils", "hand a folder to the server"),
        Program("ln", "coreutils", "share files out over several disks"),
        Program("uname", "coreutils", "name the kernel"),
        Program("nproc", "coreutils", "count cores"),
    )
}


def package_of(name: str) -> str:
    """The Debian package that brings a program.

    :raises KeyError: an undeclared program; declare it above.
    """
    return PROGRAMS[name].package

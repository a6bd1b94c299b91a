"""A server: the lab's machine with systemd as its first process, three flash devices, three slow
disks, and hotset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from campaign import systemd
from hotset.core.machines.base import put_text
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.lab.lab import Lab, LabSpec
from tests.inside_guest import guest_disk
from tests.own_lab import own_lab

MIB = 1024**2
FLASH_MIB, ORIGIN_MIB, INSIDE_MIB = 128, 64, 2048
_HOTSET = """\
#!/bin/sh
export PYTHONPATH=/opt/lab/site HOTSET_FLASHDEV=/opt/lab/flashdev
exec python3 -c 'from hotset.cli import main; main()' "$@"
"""
_FSTAB = f"{systemd.ROOT_LINE}/dev/disk/by-id/lab-origin4 /opt/lab ext4 defaults 0 0\n"
HOTSET = PurePosixPath("/usr/local/bin/hotset")
_RULES = """\
KERNEL=="ubdb[0-9]*", SYMLINK+="disk/by-id/lab-flash%n"
KERNEL=="ubdc[0-9]*", SYMLINK+="disk/by-id/lab-origin%n"
"""


class Server(systemd.Server):
    """The machine, and the files behind its disks."""

    def __init__(self, lab: Lab, origins: Path) -> None:
        super().__init__(lab.machine, lab.folder)
        self.origins = origins

    def hotset(self, *words: str) -> str:
        """A command of hotset's on the server itself."""
        run = ["sh", "-c", 'exec "$0" "$@"', str(HOTSET), *words]
        return self.machine.run(run, timeout_s=300).stdout

    def asked(self, unit: str, *names: str) -> list[str]:
        """What systemd says of a unit."""
        wanted = [word for name in names for word in ("-p", name)]
        said = self.machine.run(["systemctl", "show", unit, *wanted]).stdout.splitlines()
        values = dict(line.split("=", 1) for line in said)
        return [values[name] for name in names]


@contextmanager
def server(factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It is up, and none of its disks is accelerated."""
    origins = factory.mktemp("disks") / "origins.img"
    with origins.open("wb") as file:
        file.truncate((1 + 3 * ORIGIN_MIB + INSIDE_MIB) * MIB)
    systemd.partition(origins, [*[ORIGIN_MIB] * 3, INSIDE_MIB])
    inside = guest_disk(factory.mktemp("inside"), {}, f"{INSIDE_MIB}m")
    place = ["bs=1M", f"seek={1 + 3 * ORIGIN_MIB}", "conv=sparse,notrunc", "status=none"]
    Local().run(["dd", f"if={inside}", f"of={origins}", *place])
    inside.unlink()
    size = Bytes((1 + 3 * FLASH_MIB) * MIB)
    spec = LabSpec("uml", 1, Bytes(768 * MIB), size, saved=origins, saved_readonly=False)
    with own_lab(factory, spec) as lab:
        found = Server(lab, origins)
        systemd.set_up(found.machine, _RULES, _FSTAB)
        put_text(found.machine, _HOTSET, HOTSET, 0o755)
        found.sh("mkdir -p /opt/lab; sync")
        found.power_cut()
        systemd.partition(found.flashes, [FLASH_MIB] * 3)
        found.boot()
        yield found
        found.power_cut()

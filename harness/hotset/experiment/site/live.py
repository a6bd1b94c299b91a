"""``hotset lab up`` on this computer's own kernel: PostgreSQL with TPC-C on an accelerated disk.

The slow disk and the flash are modelled and shown as block devices. From there on all is as on a
server: a disk called ``lab``, cached in user space, its file system and the volume's mounted here,
so every command works on it. The server runs in the frozen image, which sees the same mounts. All
of it is thrown away with ``hotset lab down``.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hotset.block import filesystem, programs
from hotset.block.flashdev import Model
from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.machines.cleanup import Cleanup, end_process, exclusive, read_journal
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.record import Versioned, derived
from hotset.core.units import Bytes
from hotset.core.words import csv_text
from hotset.disk import create as creation
from hotset.disk import flash_devices
from hotset.disk.boot import udev
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import FlashError
from hotset.lab import image
from hotset.lab import lab as labs
from hotset.lab.lab import LabSpec, Status
from hotset.lab.machines import chroot
from hotset.lab.slow_disk import LoopDevice, ModelledStorage
from hotset.tier import pins

if TYPE_CHECKING:
    from hotset.databases.postgres.server import PostgresServer

    from ..file.spec import Spec
    from .context import SavedImage

DISK = "lab"
"""The name of the accelerated disk."""
_FACTS, _PASSWORD = "live.json", "password"
_MIB = 1024**2
_WAREHOUSE, _BESIDE = 150 * _MIB, 512 * _MIB
"""Room on the slow disk for a warehouse that grows, and for what is beside them."""
_VOLUME = Bytes(512 * _MIB)
_FLASH_BESIDE = 64 * _MIB
_BUFFERS_FRACTION = 0.05
_USERS = 64

# What is undone even if hotset was killed: mounts, the engine and its devices, the label's copy.
# $1: the disk; $2: its flash device; the rest: mount points.
_UNDO = """
disk=$1 flash=$2; shift 2
for folder in "$@"; do ! mountpoint -q "$folder" || umount "$folder" || umount -l "$folder"; done
[ ! -e {scripts}/$disk.sh ] || sh {scripts}/$disk.sh stop
rm -f {scripts}/$disk.sh {scripts}/$disk.shares.json {preferences}/$disk.json {rules}
rm -f {scripts}/$disk.refill
rmdir "$@" 2> /dev/null
for file in {labels}/*.json; do
    grep -qsF "\\"path\\":\\"$flash\\"" "$file" || continue
    rm -f "$file"
    losetup --list --noheadings --output NAME,BACK-FILE | while read -r loop behind; do
        [ "$behind" = "$flash" ] || continue
        for link in /dev/hotset/*; do [ "$(readlink "$link")" != "$loop" ] || rm "$link"; done
        losetup --detach "$loop"
    done
done
:
"""


@dataclass(frozen=True, slots=True)
class Live:
    """The lab that is up. ``password_file`` lies on this computer."""

    disk: str
    device: str
    slow: str
    flash: str
    volume: str
    dsn: str
    password_file: str
    warehouses: int

    @derived
    def next_commands(self) -> tuple[str, ...]:
        """Commands to try, each of them whole."""
        server = f"--dsn {self.dsn} --password-file {self.password_file}"
        disk = f"--disk {self.disk}"
        return (
            "hotset tier status",
            f"hotset warmup run database:tpcc {disk} {server}",
            f"hotset tpcc run --users 8 --warehouses {self.warehouses} --duration 30 {server}",
            f"hotset report hit-ratio --by table {disk} {server}",
            f"hotset tier watch {disk}",
            f"hotset tier set {self.disk} --policy arc",
            "hotset console",
            "hotset lab down",
        )


@dataclass(frozen=True)
class LabStatus(Status, Versioned):
    """The state of the lab. ``live``: the lab on this computer itself."""

    live: Live | None

    def to_text(self) -> str:
        lines = [f"lab: {self.state}" + (f" ({self.purpose})" if self.purpose else "")]
        for process in self.processes:
            lines.append(
                f"  {process.name}: pid {process.pid}, {'running' if process.alive else 'gone'}"
            )
        if self.live is not None:
            lines += ["try:", *(f"  {command}" for command in self.live.next_commands)]
        return "\n".join(lines)

    def csv(self) -> str:
        rows: list[tuple[object, ...]] = [(self.state, self.purpose, None, None, None)]
        if self.processes:
            rows = [(self.state, self.purpose, *astuple(process)) for process in self.processes]
        return csv_text(("state", "purpose", "process", "pid", "running"), rows)


def lacking() -> str | None:
    """Explain why this computer cannot have such a lab; None if it can."""
    return chroot.lacking()


def up(warehouses: int, model: Model, report: Reporter) -> Live:
    """Build the lab and leave it up; whatever goes wrong, nothing of it is left.

    :raises BusyError: a lab is up, or a run is going on.
    :raises FlashError: a disk of this computer has the lab's name.
    """
    local, folder = Local(), labs.lab_folder()
    taken = [disk.disk.name for disk in flash_devices.list_disks(local)]
    if DISK in taken:
        raise FlashError(
            f"this computer has a disk {DISK} already",
            Remedy("take the lab down that it belongs to", "lab down"),
        )
    spec = _spec(warehouses, model)
    saved = _save(spec, report)
    with exclusive(folder):
        labs.refuse_or_clear(folder, report.say)
        cleanup = Cleanup(folder, local)
        cleanup.owner(labs.LEFT_UP)
        try:
            return _Builder(local, folder, cleanup, report).build(spec, saved)
        except BaseException:
            _undo(folder, local)
            cleanup.undo()
            raise


def disk_bytes(warehouses: int) -> int:
    """The most that a lab takes on this computer: the saved image of its database, the slow disk,
    and the flash, on which all of that may lie."""
    return 3 * (_BESIDE + warehouses * _WAREHOUSE) + int(_VOLUME) + _FLASH_BESIDE


def was_put_up() -> bool:
    """True if a lab was put up on this computer's own kernel and not taken down since; it may have
    been killed. Takes no lock, so it may be called at any time."""
    return (labs.lab_folder() / _FACTS).exists()


def find_live() -> Live | None:
    """The lab that is up on this computer's own kernel; None where there is none."""
    file = labs.lab_folder() / _FACTS
    if not file.exists() or labs.status(labs.lab_folder()).state != "up":
        return None
    return Live(**json.loads(file.read_text()))


def take_down(say: Callable[[str], None]) -> int:
    """Take the lab down, and whatever else killed runs left; returns how many things went."""
    folder = labs.lab_folder()
    with exclusive(folder):
        was_up = any(entry.get("command") == _UNDO_NAME for entry in read_journal(folder))
        if was_up:
            _undo(folder, Local())
            say(f"removed disk {DISK} and its flash device")
    return int(was_up) + labs.down(say)


def _undo(folder: Path, local: Local) -> None:
    """In an order that lets the engine end before the devices below it."""
    for entry in read_journal(folder):
        if entry.get("process") == chroot.PROCESS:
            # The server with it: nothing of it is kept.
            end_process(entry["pid"], entry["started"], at_once=True)
    for entry in reversed(read_journal(folder)):
        if entry.get("command") == _UNDO_NAME:
            local.run(entry["argv"], timeout_s=120, check=False)
    for name in (_FACTS, _PASSWORD):
        (folder / name).unlink(missing_ok=True)


_UNDO_NAME = "remove the lab's disk"


def _spec(warehouses: int, model: Model) -> Spec:
    from ..file.spec import Spec

    size = f"{(_BESIDE + warehouses * _WAREHOUSE) // _MIB}MiB"
    return Spec.model_validate(
        {
            "name": "lab",
            "arms": ["accelerated"],
            "machine": {"kind": "image"},
            "storage": {"model": model, "size": size},
            "flash": {"size": "1GiB"},
            "tier": {"cache": "64MiB", "volume": str(_VOLUME)},
            "tpcc": {"warehouses": warehouses, "users": 1},
        }
    )


def _save(spec: Spec, report: Reporter) -> SavedImage:
    """The saved database image, which is loaded once."""
    from . import base_image

    path = base_image.path_for(spec, "image")
    saved = base_image.find_saved(path)
    if saved is not None:
        return saved
    wanted = LabSpec(
        "image",
        2,
        Bytes(2 * 1024**3),
        spec.flash.size,
        base_image.new_file(path, spec.storage.size),
        saved_readonly=False,
        tier="userspace",
    )
    with labs.running(wanted, "lab up", report.say) as lab:
        return base_image.build(lab, spec, path, secrets.token_urlsafe(24), report)


class _Builder:
    """Builds the lab, each step written down before it is done."""

    def __init__(self, local: Local, folder: Path, cleanup: Cleanup, report: Reporter) -> None:
        self._local = local
        self._folder = folder
        self._cleanup = cleanup
        self._report = report

    def build(self, spec: Spec, saved: SavedImage) -> Live:
        from .context import PLACE, VOLUME_IN_DATA

        guest = chroot.start(
            self._local, image.ensure(self._local, self._report.say), self._folder, self._cleanup
        )
        size = spec.storage.size
        slow = self._disk("slow", spec.storage.model, size, saved.path)
        room = Bytes(size + _VOLUME + _FLASH_BESIDE)
        flash = self._disk("flash", spec.flash.model, room, None)
        self._cleanup.leftover(_UNDO_NAME, undo_argv(flash))
        cache = Bytes(int(saved.size(["tpcc"]) * 1.25)).align_up(Bytes(_MIB))
        wanted = CreateRequest(
            DISK, flash, slow, "userspace", "oltp", min(cache, size), _VOLUME, reserve=False
        )
        disk = creation.create(self._local, wanted, True, lambda _: None)
        volume = flash_devices.find(self._local, DISK).flash.volume_slice.path
        filesystem.make(self._local, volume, "ext4")
        for machine in (self._local, guest):
            _mount(machine, disk.device, PLACE.data)
            _mount(machine, volume, PLACE.volume)
        source = f"{PLACE.data / VOLUME_IN_DATA}/."
        self._local.run(["cp", "-a", source, str(PLACE.volume)], timeout_s=600)
        server, password = self._server(guest, saved)
        address = server.database("tpcc")
        assert spec.tpcc is not None
        live = Live(
            DISK,
            str(disk.device),
            str(slow),
            str(flash),
            str(volume),
            f"postgresql://postgres@{address.host}:{address.port}/tpcc",
            str(password),
            spec.tpcc.warehouses,
        )
        (self._folder / _FACTS).write_text(json.dumps(asdict(live)))
        return live

    def _disk(self, name: str, model: Model, size: Bytes, content: Path | None) -> PurePosixPath:
        storage = ModelledStorage(
            self._local, LoopDevice(self._local), model, size, self._folder, name
        )
        if content is not None:
            storage.restore(content, self._cleanup)
        return storage.attach(self._cleanup)

    def _server(self, guest: Machine, saved: SavedImage) -> tuple[PostgresServer, Path]:
        from hotset.databases.postgres.server import PostgresServer, log_size, run_settings

        from .context import PLACE

        password = secrets.token_urlsafe(24)
        file = self._folder / _PASSWORD
        file.touch(0o600)
        file.chmod(0o600)
        file.write_text(password)
        server = PostgresServer(guest, PLACE, password)
        buffers = Bytes(int(saved.size(["tpcc"]) * _BUFFERS_FRACTION))
        settings = run_settings(buffers, _USERS, log_size(_VOLUME))
        server.start(settings)
        return server, file


def undo_argv(flash: PurePosixPath) -> list[str]:
    """The command that undoes what lies above the modelled devices."""
    from .context import PLACE

    script = _UNDO.format(
        scripts=programs.SCRIPTS,
        labels=flash_devices.FOLDER,
        preferences=pins.FOLDER,
        rules=udev.origin_rules(DISK),
    )
    points = [str(PLACE.data), str(PLACE.volume)]
    return ["sh", "-c", script, "hotset-lab", DISK, str(flash), *points]


def _mount(machine: Machine, device: PurePosixPath, at: PurePosixPath) -> None:
    machine.run(["mkdir", "-p", str(at)])
    machine.run(["mount", "-o", "noatime", str(device), str(at)])

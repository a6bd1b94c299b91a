"""Targets of `disk bench`: a file, a block device, or a model that is served for it."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.block import devices
from hotset.block.devices import Confirm, Device
from hotset.core.errors import Remedy
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.lab import served_model

from .disk_bench import BenchError

_UNTRUE = (
    "is read as it is: what was never written there, or was discarded, comes from no medium, so the"
    " figures may be better than the disk"
)


@dataclass(frozen=True, slots=True)
class Target:
    """``file``: what fio opens."""

    name: str
    file: Path


@contextmanager
def open_target(
    local: Local,
    path: Path | None,
    model: str | None,
    size: Bytes,
    read_only: bool,
    yes: bool,
    say: Callable[[str], None],
    confirm: Confirm | None = None,
    path_us: int | None = None,
) -> Iterator[Target]:
    """Have the target ready; a file or model that is made for it is gone in the end.

    :param yes: a device that is not empty may be written over.
    :param say: is told which device is written over.
    :param confirm: asked before that, where something lies on it.
    :param path_us: time that serving a model adds to a small request here; None: not measured.
    :raises BenchError: neither or both are named, a file is too small, a device too.
    :raises InUseError: somebody uses the device.
    :raises DeviceRefusedError: it is not empty and ``yes`` is not given.
    """
    if (path is None) == (model is None):
        raise BenchError("name a file or device, or a model: one of them", field="model")
    if model is not None:
        with served_model.serve_model(local, model, size, path_us=path_us) as served:
            yield Target(model, served.file)
        return
    if path is None:
        return
    if path.exists() and stat.S_ISBLK(path.stat().st_mode):
        device = _inspect(local, path, size)
        if read_only:
            say(f"{path} {_UNTRUE}")
        else:
            devices.check(local, device, "flash", yes, field="target")
            devices.overwrite(device, say, confirm)
        yield Target(str(path), path)
        return
    with _test_file(local, path, size, read_only) as file:
        if file.stat().st_blocks * 512 < size:
            say(f"{path} has holes. It {_UNTRUE}")
        yield Target(str(path), file)


def _inspect(local: Local, path: Path, size: Bytes) -> Device:
    device = devices.inspect(local, PurePosixPath(path))
    if device.size < size:
        raise BenchError(f"{path} holds {device.size}, less than {size}", field="size")
    return device


@contextmanager
def _test_file(local: Local, path: Path, size: Bytes, read_only: bool) -> Iterator[Path]:
    """A file that is there is only read; another one is written and removed."""
    if path.exists():
        if not path.is_file():
            raise BenchError(f"{path} is no file: name one in it, such as {path / 'bench.dat'}")
        if path.stat().st_size < size:
            raise BenchError(
                f"{path} has {Bytes(path.stat().st_size)}, less than {size}", field="size"
            )
        if not read_only:
            raise BenchError(
                f"{path} is there, and its data would be lost: name a new file",
                Remedy("only read it", parameters={"read_only": True}),
                field="target",
            )
        yield path
        return
    if not path.parent.is_dir():
        raise BenchError(f"{path.parent}: no such folder")
    try:
        # Written, not only allocated: reads of what was never written come from no device.
        argv = ["fio", "--name=hotset", f"--filename={path}", "--rw=write", "--bs=1M"]
        argv += [f"--size={int(size)}", "--end_fsync=1", "--refill_buffers", "--output=/dev/null"]
        local.run(argv, timeout_s=3600)
        yield path
    finally:
        path.unlink(missing_ok=True)

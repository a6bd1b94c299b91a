"""Room on this computer's file systems: callers from elsewhere leave some.

Whoever may run benchmarks has files made on the server: the lab's disks, archives of runs, jobs,
files of a benchmark. None begins where too little would be left for what else the server does.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from hotset.cachelayer.common.errors import PrerequisiteError
from hotset.cachelayer.common.paths import cache_dir, data_dir, state_dir
from hotset.cachelayer.common.units import Bytes

_RESERVE_MAX = 10 * 1024**3
"""Bytes; on a small file system a twentieth."""


@dataclass(frozen=True, slots=True)
class Makes:
    """Marks a size: so many files of it are made on this computer."""

    files: int = 1


class NoRoomError(PrerequisiteError):
    """Too little would be left; the message names the file system's folder."""


def require(fields: Mapping[str, FieldInfo], values: Mapping[str, Any]) -> None:
    """See that a request leaves room.

    :raises NoRoomError: it does not, or there is none left already.
    """
    wanted = {
        name: one.files * int(Bytes.parse(values[name]))
        for name, field in fields.items()
        for one in field.metadata
        if isinstance(one, Makes)
    }
    folder, size = values.get("folder"), sum(wanted.values())
    if wanted and folder is not None:
        _require(Path(folder), size, "size")
        size = 0
    require_lab(size, "size" if size else None)


def require_lab(wanted: int, field: str | None) -> None:
    """See that as many bytes have room where the lab's disks, runs and jobs are kept.

    :raises NoRoomError: they have not.
    """
    for folder in (data_dir(), cache_dir(), state_dir()):
        _require(folder, wanted, field)


def _require(folder: Path, wanted: int, field: str | None) -> None:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    found = shutil.disk_usage(there)
    reserve = min(_RESERVE_MAX, found.total // 20)
    if found.free - wanted < reserve:
        room = Bytes(max(0, found.free - reserve))
        raise NoRoomError(
            f"{Bytes(wanted)} and more may be written, and {folder} has room for {room} beside the"
            f" {Bytes(reserve)} that the API and the console leave free",
            field=field,
        )

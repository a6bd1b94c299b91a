"""A modelled device as a file of this computer, for as long as a context lasts; and what may be
done to one that is being served."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotset.block import flashdev, programs
from hotset.block.flashdev import Model
from hotset.core.errors import RequestError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import percent, print_table

if TYPE_CHECKING:
    from rich.console import Console

DISK_NAME = "disk"
SOCKET_NAME = "control"


class ArrayError(RequestError):
    """A served device refuses what was asked of its array; the message says why."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an array: ``active``, ``failed`` or ``rebuilding``, and then its share done."""

    number: int
    state: str
    rebuilt: float | None = None


@dataclass(frozen=True, slots=True)
class Reads:
    """How many reads a hybrid disk's flash has served, and how many the disk behind it."""

    flash: int
    disk: int


@dataclass(frozen=True)
class DiskArray(Versioned):
    """The state that a served device reports. ``members`` is empty where it has no array; ``reads``
    is None where no flash is in front of a disk."""

    csv_rows = "members"

    members: tuple[Member, ...]
    spares: int
    volatile: Bytes
    reads: Reads | None = None

    def show(self, console: Console) -> None:
        rows: list[tuple[object, ...]] = [
            (
                member.number,
                member.state,
                None if member.rebuilt is None else percent(member.rebuilt, 0),
            )
            for member in self.members
        ]
        columns = ("member", "state", "rebuilt")
        print_table(console, f"spares left: {self.spares}", columns, rows)


@dataclass(frozen=True)
class DiskPowerCut(Versioned):
    """Loss of data in a power cut: written, and not flushed."""

    lost_bytes: Bytes

    def show(self, console: Console) -> None:
        console.print(f"lost: {self.lost_bytes} of what was written and not flushed")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """``file``: the device; ``socket``: for `status`, `fail` and `replace`."""

    file: Path
    socket: Path


@contextmanager
def serve_model(
    local: Local,
    model: Model,
    size: Bytes,
    backing: Path | None = None,
    trace: Path | None = None,
    path_us: int | None = None,
    cleanup_at: Callable[[Path, Local], Cleanup] = Cleanup,
) -> Iterator[ServedModel]:
    """Serve a model on a sparse file in a temporary folder; all of it is gone in the end.

    :param backing: the device's existing data, in a file of ``size`` that stays.
    :param trace: where every read and write is written down, complete when the context ends.
    :param path_us: time that serving adds to a small request here, where it was measured.
    :param cleanup_at: makes the journal of a folder; a plan's ends no process.
    :raises RefusedError: the model is not usable, or smaller than ``size``.
    """
    with tempfile.TemporaryDirectory(prefix="hotset-model-") as name:
        folder = Path(name)
        cleanup = cleanup_at(folder, local)
        mount, socket = folder / "mount", folder / SOCKET_NAME
        if backing is None:
            backing = folder / "data"
            with backing.open("wb") as file:
                file.truncate(int(size))
        with cleanup.part():
            words = ["serve", "--model", flashdev.model_argument(model, folder, "model")]
            words += ["--backing", str(backing), "--name", DISK_NAME]
            words += ["--control", str(socket), "--volatile"]
            words += ["--trace", str(trace)] if trace else []
            words += [] if path_us is None else ["--path-us", str(path_us)]
            flashdev.serve(local, words, mount, folder / "log", cleanup, "modelled device")
            yield ServedModel(mount / DISK_NAME, socket)


def status(local: Local, socket: Path) -> DiskArray:
    """How the members of its array are.

    :raises ArrayError: nobody answers at the socket.
    """
    return _ask(local, socket, {"status": {}})


def fail(local: Local, socket: Path, member: int) -> DiskArray:
    """A member fails, with all that is under way on it; a spare takes its place.

    :raises ArrayError: there is no such member, or it has failed before.
    """
    return _ask(local, socket, {"fail": {"member": member}})


def replace(local: Local, socket: Path, member: int) -> DiskArray:
    """A new device takes the place of a failed member, and is rebuilt.

    :raises ArrayError: it is active, or its data is lost.
    """
    return _ask(local, socket, {"replace": {"member": member}})


def power_cut(local: Local, socket: Path) -> Bytes:
    """Cut the power: nothing is served any more. Returns what was answered and is lost.

    :raises ArrayError: nobody answers at the socket.
    """
    return Bytes(int(_ask_device(local, socket, {"power_cut": {}})["lost_bytes"]))


def _ask(local: Local, socket: Path, question: dict[str, Any]) -> DiskArray:
    return parse(_ask_device(local, socket, question))


def _ask_device(local: Local, socket: Path, question: dict[str, Any]) -> dict[str, Any]:
    argv = [programs.engine(local), "ask", str(socket), json.dumps(question)]
    result = local.run(argv, check=False, timeout_s=30)
    answer = result.stdout.strip()
    loaded: dict[str, Any] = json.loads(answer) if answer.startswith("{") else {}
    if "error" in loaded:
        raise ArrayError(str(loaded["error"]))
    if result.rc != 0 or not loaded:
        detail = programs.last_message(result.stderr)
        raise ArrayError(f"no served device answers at {socket}: {detail}")
    return loaded


def parse(loaded: dict[str, Any]) -> DiskArray:
    """
    >>> parse({"array": {"members": ["active", {"rebuilding": 0.5}], "spares": 1, "rows": {}},
    ...     "volatile_bytes": 0}).members[1]
    Member(number=1, state='rebuilding', rebuilt=0.5)
    """
    array = loaded.get("array") or {"members": [], "spares": 0}
    members = []
    for number, member in enumerate(array["members"]):
        if isinstance(member, str):
            members.append(Member(number, member))
        else:
            ((state, share),) = member.items()
            members.append(Member(number, state, float(share)))
    volatile, reads = Bytes(int(loaded["volatile_bytes"])), loaded.get("reads")
    return DiskArray(
        tuple(members), int(array["spares"]), volatile, Reads(**reads) if reads else None
    )

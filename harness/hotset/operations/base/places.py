"""The machine, the disk and the labels of its files that an operation works with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from hotset.core.errors import RequestError
from hotset.jobs.lock import Lock

T = TypeVar("T")
if TYPE_CHECKING:
    from pathlib import PurePosixPath

    from pydantic import SecretStr

    from hotset.core.machines.base import Machine
    from hotset.core.machines.locks import Mode
    from hotset.databases.connect import EngineName
    from hotset.disk.cache_device import AttachedDisk, Card
    from hotset.monitoring.hit_report import Label, Target


class NamesServer(Protocol):
    """A request that may name a database server."""

    @property
    def engine(self) -> EngineName: ...
    @property
    def dsn(self) -> str | None: ...
    @property
    def password(self) -> SecretStr | None: ...


@contextmanager
def machine(name: str) -> Iterator[Machine]:
    """The machine of a name."""
    from .. import connect as machines

    with machines.open_machine(name) as there:
        yield there


@contextmanager
def maybe_machine(name: str | None) -> Iterator[Machine | None]:
    """The machine of a name, where one is given."""
    if name is None:
        yield None
        return
    with machine(name) as there:
        yield there


@contextmanager
def cut_anew(name: str, what: str, commands: list[str] | None = None) -> Iterator[Machine]:
    """A machine on which hotset is root, for an operation that cuts its flash anew.

    :param what: has the machine's lock meanwhile: ``tier detach shop``.
    :param commands: a dry run, which locks nothing: commands that would change something are added
        here and not run.
    """
    from hotset.core.machines.dry_run import DryRun
    from hotset.disk import cache_device
    from hotset.disk import operation as locked

    from .. import connect as machines

    with machines.open_machine(name) as there:
        cache_device.need_root(there)
        if commands is not None:
            yield DryRun(there, commands.append)
            return
        with locked.on_cards(there, what) as alone:
            yield alone


@contextmanager
def disk_of(
    name: str, disk: str | None, what: str = "", mode: Mode = "exclusive"
) -> Iterator[AttachedDisk]:
    """The disk a user means, on its card and machine.

    :param what: has the disk's lock meanwhile: ``warmup run``; without one nothing is locked.
    """
    from hotset.disk import cache_device
    from hotset.disk import operation as locked

    from .. import connect as machines

    with machines.open_machine(name) as there:
        if not what:
            yield cache_device.find(there, disk)
            return
        with locked.on_disk(there, what, disk, mode) as found:
            yield found


@contextmanager
def disk_as_root(
    name: str, disk: str | None, what: str, commands: list[str] | None = None
) -> Iterator[AttachedDisk]:
    """As :func:`disk_of`, on a machine on which hotset is root; a dry run locks nothing."""
    from hotset.core.machines.dry_run import DryRun
    from hotset.disk import cache_device
    from hotset.disk import operation as locked

    from .. import connect as machines

    with machines.open_machine(name) as there:
        cache_device.need_root(there)
        if commands is not None:
            tried = DryRun(there, commands.append)
            yield replace(cache_device.find(there, disk), machine=tried)
            return
        with locked.on_disk(there, what, disk) as found:
            yield found


@contextmanager
def disk_cut_anew(name: str, disk: str | None, what: str) -> Iterator[AttachedDisk]:
    """A disk, for an operation that cuts the flash anew."""
    from hotset.disk import cache_device

    with cut_anew(name, f"{what} {disk or ''}".strip()) as there:
        yield cache_device.find(there, disk)


@contextmanager
def target_of(name: str, disk: str | None) -> Iterator[Target]:
    """The disk a user means, with where its readings are kept.

    :raises TierRefusedError: it is not active, so there is nothing to read.
    """
    from hotset.disk import lifecycle
    from hotset.monitoring.hit_report import Target

    with disk_of(name, disk) as found:
        lifecycle.active(found)
        yield Target(name, found)


def label_of(
    machine: Machine, device: PurePosixPath | None, by: str, request: NamesServer
) -> Label:
    """What names the owner of a file: itself, its database or its table.

    :param device: the accelerated disk, where one is meant: the server's files may be there under
        other names than the server has for them.
    :raises PrerequisiteMissingError: the server does not tell, or has no file there.
    """
    from hotset.core.machines.base import PrerequisiteMissingError

    if by not in ("database", "table"):
        return str
    if request.dsn is None:
        raise RequestError(
            f"by {by} hotset has to ask the database server for its files: name the server, or use"
            " by file",
            field="by",
        )
    from hotset.databases import connect
    from hotset.databases.base import Unavailable
    from hotset.hitratio import attribution

    below = None if device is None else attribution.mount_point(machine, device)
    password = None if request.password is None else request.password.get_secret_value()
    database = connect.database(request.engine, request.dsn, password)
    with closing(connect.engine(database)) as server:
        label = server.labels("database" if by == "database" else "table", machine, below)
    if isinstance(label, Unavailable):
        raise PrerequisiteMissingError(label.reason)
    return label


def disks(name: str) -> list[str]:
    """The accelerated disks of a machine.

    :raises HotsetError: they cannot all be read.
    """
    return [disk.name for card in _cards(name) for disk in card.disks]


def cards(name: str) -> list[str]:
    """As :func:`disks`, the cards."""
    return [card.name for card in _cards(name)]


def _cards(name: str) -> tuple[Card, ...]:
    from hotset.disk import cache_device

    with machine(name) as there:
        known = cache_device.inventory(there)
    if known.problems:
        raise cache_device.CardError("; ".join(known.problems))
    return known.cards


def on_disk(machine: str, disk: str | None) -> Lock:
    """What needs a disk for itself."""
    return Lock(f"machine {machine}", disk)


def parse_field(field: str, parse: Callable[[], T]) -> T:
    """What a parser of text makes of a field.

    :raises RequestError: it refuses it.
    """
    try:
        return parse()
    except ValueError as error:
        raise RequestError(str(error), field=field) from None

"""From targets to a plan: pinned first, excluded never, what the file system needs last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from hotset.cachelayer import (
    heatstore,
    offline,
    owners,
    plans,
    preferences,
    snapshot,
    targets,
    warmup,
)
from hotset.cachelayer.bcache import Bcache
from hotset.cachelayer.card import Card, Disk, KernelTier, built
from hotset.cachelayer.extents import Run, union
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.plans import Plan, Wish
from hotset.cachelayer.slots import HOTTEST
from hotset.cachelayer.snapshot import Snapshot, SnapshotError
from hotset.cachelayer.targets import Look, TargetError
from hotset.cachelayer.tier import TierFailedError
from hotset.harness.engines import connect
from hotset.harness.engines.connect import EngineName
from hotset.harness.engines.postgres import PostgresDatabase
from hotset.harness.warmups.targets import Server, Target, check_file, parse

_HEAT_LAYERS = 64


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asked a warm-up for."""

    machine: str
    targets: tuple[str, ...]
    pin: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    mount_point: PurePosixPath | None = None
    engine: EngineName = "postgres"
    dsn: str | None = None
    password_file: Path | None = None


@dataclass(slots=True)
class Planned:
    """A plan, and what is worth saying about it."""

    plan: Plan
    origin_mb_per_s: float
    notes: list[str] = field(default_factory=list)


def planned(
    machine: Machine, card: Card, disk: Disk, request: Request, origin_mb_per_s: float | None
) -> Planned:
    """As :func:`made`, with the rate that its seconds come from.

    :param origin_mb_per_s: None measures it, on the origin's first megabytes.
    """
    plan, notes = made(machine, card, disk, request)
    rate = origin_mb_per_s or warmup.sequential_rate(machine, disk.origin)
    return Planned(plan, rate, notes)


def made(machine: Machine, card: Card, disk: Disk, request: Request) -> tuple[Plan, list[str]]:
    """The plan of a request against what is cached now, and what is worth saying about it.

    :raises TargetError: a target is not there.
    :raises TierFailedError: the tier does not stand.
    """
    tier = built(machine, card, disk)
    if not tier.stands():
        raise TierFailedError(f"disk {disk.name} is down: activate it first (`hotset tier"
                              f" activate {disk.name}`)")  # fmt: skip
    kept = preferences.of(machine, disk.name)
    notes: list[str] = []
    with (
        _server(request) as server,
        targets.look(machine, disk.device, disk.spec.block, request.mount_point) as look,
    ):
        maker = _Maker(request.machine, disk, look, server, notes)
        # What is pinned for this once stands against what is excluded for good, and the reverse.
        pinned = maker.preferred(kept.pinned, request.exclude, "pinned")
        pinned += [maker.wish(parse(text), pinned=True) for text in request.pin]
        wishes = [*pinned, *(maker.wish(parse(text)) for text in request.targets), look.own()]
        excluded = maker.preferred(kept.excluded, request.pin, "excluded")
        excluded += [maker.wish(parse(text)) for text in request.exclude]
    plan = plans.made(
        wishes,
        union(*(layer for wish in excluded for layer in wish.layers)),
        tier.resident(),
        disk.spec.block,
        tier.capacity,
    )
    return plan, notes


def take_snapshot(machine: Machine, card: Card, disk: Disk) -> Snapshot:
    """What is cached now, with the files it belongs to where the file system is mounted."""
    tier = built(machine, card, disk)
    with targets.look(machine, disk.device, disk.spec.block, None) as look:
        files = owners.files(machine, disk.device) if look.folder else []
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return snapshot.taken(disk.name, at, look, _levels(tier), files)


def _levels(tier: KernelTier) -> dict[int, list[Run]]:
    """What is cached, by the policy's level; bcache has one."""
    if isinstance(tier, Bcache):
        return {HOTTEST: tier.resident()}
    return offline.look(tier).by_level()


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes wishes out of targets."""

    machine: str
    disk: Disk
    look: Look
    server: Callable[[], Server]
    notes: list[str]

    def wish(self, target: Target, pinned: bool = False) -> Wish:
        if target.kind == "heat":
            return self._heat(target, pinned)
        if target.kind == "snapshot":
            return self._snapshot(target, pinned)
        paths = [target.name]
        if target.of_database:
            paths = self.server().paths(self.look.machine, target)
        return self.look.wish(target.text, paths, pinned)

    def preferred(self, kept: Sequence[str], but: Sequence[str], what: str) -> list[Wish]:
        """What is pinned or excluded for good. One that cannot be looked up now (a table while the
        server is down, a file that was dropped) is left out and told, so that the rest is done."""
        wishes = []
        for text in kept:
            if text in but:
                continue
            try:
                wishes.append(self.wish(parse(text), pinned=what == "pinned"))
            except TargetError as error:
                self.notes.append(f"{what}, but left out this time: {error}")
        return wishes

    def _heat(self, target: Target, pinned: bool) -> Wish:
        ranked = heatstore.hottest(self.machine, self.disk.name, self.look.block)
        if not ranked:
            raise TargetError("TARGET heat: nothing was counted of this disk yet; `hotset heat"
                              " start` begins, and `hotset heat top` reads")  # fmt: skip
        size = -(-len(ranked) // _HEAT_LAYERS)
        layers = tuple(
            union(run for run, _ in ranked[at : at + size]) for at in range(0, len(ranked), size)
        )
        return Wish(target.text, sum(map(len, layers)), layers, pinned)

    def _snapshot(self, target: Target, pinned: bool) -> Wish:
        try:
            saved = snapshot.parse(check_file(target).read_text())
            kept = snapshot.kept(saved, self.look)
        except SnapshotError as error:
            raise TargetError(f"TARGET {target.text}: {error}") from None
        for name in kept.deleted:
            self.notes.append(f"{name} was deleted since the snapshot: its blocks are skipped")
        return Wish(target.text, sum(map(len, kept.layers)), kept.layers, pinned)


@contextmanager
def _server(request: Request) -> Iterator[Callable[[], Server]]:
    """Connects at the first call, and closes at the end."""
    opened: list[Server] = []

    def server() -> Server:
        if not opened:
            opened.append(_connected(request))
        return opened[0]

    try:
        yield server
    finally:
        for one in opened:
            with closing(one.engine):
                if one.connection is not None:
                    one.connection.close()


def _connected(request: Request) -> Server:
    named: Sequence[str] = [
        text for text in (*request.targets, *request.pin) if parse(text).of_database
    ]
    if request.dsn is None:
        raise TargetError(
            f"TARGET {named[0] if named else 'pinned by name'}: only the database server knows"
            " where it lies: give --dsn (or HOTSET_DSN)"
        )
    database = connect.database(request.engine, request.dsn, request.password_file)
    engine = connect.engine(database)
    session = database.session() if isinstance(database, PostgresDatabase) else None
    return Server(engine, session, database.dbname)

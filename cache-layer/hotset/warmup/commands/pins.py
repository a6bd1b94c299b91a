"""Commands for what a disk's cache always keeps and never takes, and how it is shared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from hotset.core import errors, fields
from hotset.core.errors import Remedy, RequestError
from hotset.core.operation import Cli, Context, Kind, Lines, operation
from hotset.core.rights import Right
from hotset.core.units import Blocks, Bytes
from hotset.disk import places

from .warmup import Lookup, Rate, planning_of

if TYPE_CHECKING:
    from hotset.tier.pins import Preferences

    from .. import text
    from ..division import Kept

_ONLY_WARM_UPS = (
    "{kind} cannot pin by itself: what is pinned comes first in every warm-up of this disk, and"
    " what is excluded is left out of them, but the kernel's policy still evicts and promotes as"
    " it likes. A cache of kind userspace enforces both"
)


class Prefer(Lookup):
    targets: Annotated[
        fields.Targets,
        Field(min_length=1, description="Files, folders, tables, databases."),
        Cli(argument=True, metavar="TARGET"),
    ]


class Fetch(Prefer):
    rate: Rate = None


@operation("warmup pin", Kind.JOB, Right.OPERATE, ("Add", "HotsetPin"), progress=True)
def pin_targets(request: Fetch, context: Context) -> Lines:
    """Keep these targets in the cache, whatever else is accessed.

    A cache of kind userspace fetches them now, keeps room for them, and never evicts them. The
    kernel's dm-cache and bcache cannot do that: with them, pinned targets only come first in every
    warm-up, so schedule one.
    """

    def add_pin(preferences: Preferences) -> Preferences:
        for text in request.targets:
            preferences = preferences.having("pinned", text)
        return preferences

    return _prefer(request, request.targets, add_pin, context, request.rate)


@operation("warmup exclude", Kind.JOB, Right.OPERATE, ("Add", "HotsetExclusion"), progress=True)
def exclude_targets(request: Prefer, context: Context) -> Lines:
    """Keep these targets out of the cache.

    A cache of kind userspace writes back and drops what it holds of them, and does not cache them
    again. The kernel's dm-cache and bcache may still promote them when they are used; there only
    warm-ups leave them out.
    """

    def add_exclusion(preferences: Preferences) -> Preferences:
        for text in request.targets:
            preferences = preferences.having("excluded", text)
        return preferences

    return _prefer(request, request.targets, add_exclusion, context)


def _part(text: Any) -> Any:  # noqa: ANN401 - whatever was given
    from ..division import part_of

    if isinstance(text, str):
        part_of(text, Blocks(1), Bytes(1))
    return text


_PART_PATTERN = r"^ *[0-9]+(\.[0-9]+)? *([KMGT]i?B|%) *$"
Part = Annotated[
    fields.Expression,
    BeforeValidator(_part),
    WithJsonSchema({"type": "string", "pattern": _PART_PATTERN}),
]


class ShareRequest(Lookup):
    target: Annotated[
        fields.OnDisk,
        Field(description="A database, a table, a folder or a file."),
        Cli(argument=True, metavar="TARGET"),
    ]
    guarantee: Annotated[
        Part,
        Field(description="The share of the cache that is reserved for it, such as 30% or 20GiB."),
    ] = "0%"
    limit: Annotated[
        Part, Field(description="The most of the cache that it may use, such as 60% or 50GiB.")
    ] = "100%"


@operation("warmup share", Kind.JOB, Right.OPERATE, ("Add", "HotsetShare"), progress=True)
def share_target(request: ShareRequest, context: Context) -> Lines:
    """Guarantee a target a share of the cache, and limit it, while the disk is in use.

    A scan of one database then cannot take another's share. To change a share, run the command
    again. Only for disks of kind userspace.
    """
    from hotset.tier.pins import Share

    share = Share(request.target, request.guarantee, request.limit)
    return _prefer(
        request,
        [share.target],
        lambda preferences: preferences.sharing(share),
        context,
        needs_engine=True,
    )


@operation("warmup unpin", Kind.JOB, Right.OPERATE, ("Remove", "HotsetPin"), progress=True)
def unpin_targets(request: Prefer, context: Context) -> Lines:
    """Remove targets from those pinned, excluded and shared."""

    from ..targets import parse

    targets = [parse(text).text for text in request.targets]

    def without(preferences: Preferences) -> Preferences:
        for text in targets:
            preferences = preferences.without(text)
        return preferences

    return _prefer(request, (), without, context, reported=targets)


class Refresh(Lookup):
    rate: Rate = None


@operation("warmup refresh", Kind.JOB, Right.OPERATE, ("Update", "HotsetPin"), progress=True)
def refresh(request: Refresh, context: Context) -> Lines:
    """Look up again where pinned, excluded and shared targets are, and cache what is pinned.

    Use it when tables have grown. Every warm-up of the disk does this as well.
    """
    return _prefer(request, None, lambda known: known, context, request.rate, needs_engine=True)


@operation(
    "warmup list",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetPin"),
    result="warmup.text:Preferences",
)
def list_preferences(request: places.DiskAndServer, context: Context) -> text.Preferences:
    """List what is pinned, excluded and shared on a disk, and how much of it is cached.

    Each is looked up again: what was rewritten or dropped no longer lies where it was pinned.
    Of tables and databases that takes --dsn.
    """
    from hotset.tier import pins

    from .. import division, text

    with places.disk_of(request.machine, request.disk) as attached:
        kept = division.measure_kept(attached)
        wanted = pins.read_preferences(attached.machine, attached.disk.name)
        now = division.find_again(attached, wanted, planning_of(request, request.machine))
        for remedy in division.ways_out(now, attached.disk.name, request.machine, request.dsn):
            context.note(f"to {remedy.purpose}: {errors.command(remedy)}")
        return text.Preferences.from_preferences(wanted, kept, now)


def _prefer(
    request: Lookup,
    renewed: Collection[str] | None,
    change: Callable[[Preferences], Preferences],
    context: Context,
    rate: str | None = None,
    needs_engine: bool = False,
    reported: Collection[str] = (),
) -> Lines:
    """Change what is preferred, and have the cache keep to it where it can.

    :param renewed: targets that are looked up again; None: all of them.
    :param reported: targets to report on; none: those that are looked up.
    """
    from hotset.disk import lifecycle
    from hotset.tier import kinds, pins

    from .. import division
    from ..targets import parse

    for text in renewed or ():
        parse(text)
    with places.disk_of(request.machine, request.disk, "warmup pin") as attached:
        machine, disk = attached.machine, attached.disk
        before = pins.read_preferences(machine, disk.name)
        wanted = change(before)
        if renewed is None:
            renewed = wanted.targets
        if not kinds.kind_of_name(disk.kind).divides:
            if needs_engine:
                raise RequestError(
                    f"{disk.kind} cannot be divided: the kernel's caches have no shares and no"
                    " pins",
                    Remedy("use a cache that has them", "tier create", {"kind": "userspace"}),
                    field="disk",
                )
            pins.save(machine, disk.name, wanted)
            _tell(reported or renewed, before, wanted, None, context)
            context.note(_ONLY_WARM_UPS.format(kind=disk.kind))
            return Lines()
        lifecycle.active(attached)
        place = planning_of(request, request.machine, request.mount_point)
        notes = division.divide(attached, wanted, place, renewed, context.report)
        pins.save(machine, disk.name, wanted)
        division.fetch(attached, context.report, fields.maybe_rate(rate))
        _tell(reported or renewed, before, wanted, division.measure_kept(attached), context)
    for note in notes:
        context.note(note)
    return Lines()


def _tell(
    targets: Collection[str],
    before: Preferences,
    after: Preferences,
    kept: Mapping[str, Kept] | None,
    context: Context,
) -> None:
    """Say what was done to each target, and what the cache has of it now."""
    from .. import text

    for target in targets:
        context.message(text.describe_preference(target, before, after, kept))
    if not targets:
        context.message("nothing is pinned, excluded or shared: nothing changed")

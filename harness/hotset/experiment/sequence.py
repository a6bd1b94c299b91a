"""The sequence of an experiment: which arm comes when, with which workloads, what is done there.

One for the run, which measures at each step (:mod:`.recorded`), and for the plan, which prints what
would be measured (:mod:`.plan`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from hotset.block.extents import Run
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import CACHED_ARMS, Workload

from . import learning, timed
from .file.spec import Spec
from .site.arms import ARMS, Placed, Workloads
from .site.context import Site
from .timed import Timed


@dataclass(frozen=True, slots=True)
class Turn:
    """One arm in one repeat, with what is run on one placement of the databases."""

    arm: ArmName
    repeat: int
    workloads: Workloads


class Work(Protocol):
    """The actions at each step."""

    def is_done(self, spec: Spec, turn: Turn, workload: Workload) -> bool:
        """True if an earlier part of the run did it."""

    def learn(self, site: Site, workloads: Workloads) -> tuple[Run, ...]:
        """Blocks of the origin, those first that the workloads ask for most often."""

    def turn(self, site: Site, turn: Turn) -> AbstractContextManager[None]:
        """Around everything on an arm, its setting up included."""

    def begin(self, site: Site, turn: Turn, placed: Placed) -> None:
        """The server has started: prepare it as every arm's, and probe its cache where there is
        one."""

    def window(self, site: Site, turn: Turn, placed: Placed, run: Timed, users: int) -> None:
        """Many users for a while, if that is not done yet."""

    def find_rate(self, site: Site, turn: Turn, placed: Placed, run: Timed) -> None:
        """Search for the highest rate within the limits, if that is not done yet."""

    def queries(self, site: Site, turn: Turn, placed: Placed) -> None:
        """The 22 queries."""


def walk(site: Site, work: Work) -> None:
    """All of an experiment, in its order."""
    hottest: dict[Workloads, tuple[Run, ...]] = {}
    for turn in turns(site.spec):
        if all(work.is_done(site.spec, turn, workload) for workload in turn.workloads):
            continue
        if turn.arm in CACHED_ARMS and learning.is_wanted(site.spec):
            if turn.workloads not in hottest:
                hottest[turn.workloads] = work.learn(site, turn.workloads)
            site = replace(site, hottest=hottest[turn.workloads])
        take(site, turn, work)


def take(site: Site, turn: Turn, work: Work) -> None:
    """Set one arm up, run its workloads, take it down."""
    with work.turn(site, turn), ARMS[turn.arm](site, turn.workloads) as placed:
        on_arm(site, turn, placed, work)


def on_arm(site: Site, turn: Turn, placed: Placed, work: Work) -> None:
    """Run the workloads on an arm that is set up."""
    work.begin(site, turn, placed)
    run = timed.find_timed(site.spec)
    for workload in turn.workloads:
        if work.is_done(site.spec, turn, workload):
            continue
        if run is None or workload != run.name:
            work.queries(site, turn, placed)
            continue
        for users in users_in_turn(run.want.users, turn.repeat):
            work.window(site, turn, placed, run, users)
        if run.want.find_rate:
            work.find_rate(site, turn, placed, run)


def turns(spec: Spec) -> Iterator[Turn]:
    """All of them, in the order of the run."""
    for repeat, arm in order(spec):
        for workloads in spec.placements:
            yield Turn(arm, repeat, workloads)


def order(spec: Spec) -> Iterator[tuple[int, ArmName]]:
    """Arms interleaved over the repeats, each second repeat backwards: slow drift of the
    computer falls on all arms alike.

    >>> from types import SimpleNamespace
    >>> list(order(SimpleNamespace(repeats=2, arms=("a", "b"))))
    [(1, 'a'), (1, 'b'), (2, 'b'), (2, 'a')]
    """
    for repeat in range(1, spec.repeats + 1):
        arms = spec.arms if repeat % 2 else spec.arms[::-1]
        for arm in arms:
            yield repeat, arm


def users_in_turn(each_users: Sequence[int], repeat: int) -> Sequence[int]:
    """The points of a curve, every second repeat backwards: the database grows from window to
    window, and that falls on all points alike.

    >>> users_in_turn((1, 2, 4), 1), users_in_turn((1, 2, 4), 2)
    ((1, 2, 4), (4, 2, 1))
    """
    return each_users if repeat % 2 else each_users[::-1]

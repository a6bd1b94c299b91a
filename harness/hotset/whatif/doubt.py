"""How far off predictions have been: of published windows that nothing was learned from.

``held_out.json`` has each of them with what the model says of it: its kind is what was other than
in the run learned from. A range for a prediction of such a kind is as wide as nine of ten of these
windows need it. What several runs say of one window is one error, its largest: they share what was
measured there, and none of them is a trial of its own. A kind of which no window was ever published
has no range of its own; it gets the widest of the others, and pages say so. Windows of
another hit ratio are of other policies and block sizes, too: those are in its range.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import ceil, exp, fsum, log, sqrt
from typing import Literal, get_args

from hotset.core.words import percent

Kind = Literal[
    "hit ratio",
    "storage",
    "policy",
    "users",
    "another run",
    "cores",
    "write mode",
    "block size",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
COVERED = 0.9
_WORDS: dict[Kind, str] = {
    "hit ratio": "another hit ratio (policy and block size as well)",
    "storage": "other storage",
    "policy": "another policy",
    "users": "other users",
    "another run": "another run",
    "cores": "other cores",
    "write mode": "another write mode",
    "block size": "another block size",
}


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A window that was predicted from another run, or another part of its own.

    :ivar window: which one it is; several runs may have been asked about the same.
    """

    kind: Kind
    window: str
    learned_from: str
    hit_ratio: float
    users: int
    predicted_nopm: float
    measured_nopm: float

    @property
    def error(self) -> float:
        """Relative error of the prediction, by what was measured."""
        return self.predicted_nopm / self.measured_nopm - 1

    @property
    def log_error(self) -> float:
        """How far it is off, the same for twice and for half."""
        return abs(log(self.predicted_nopm / self.measured_nopm))


@dataclass(frozen=True, slots=True)
class Doubt:
    """The expected error of predictions of a kind.

    :ivar factor: by which a range extends on either side.
    :ivar windows: different ones that it was held against; 0: none, and the factor is the widest
        of the other kinds.
    :ivar mean_error: of the errors' sizes, of all predictions; None: there is no window.
    :ivar chance: that the next window lies in such a range; None: there is no window.
    """

    kind: Kind
    factor: float
    windows: int
    mean_error: float | None
    chance: float | None


@cache
def hold_each_out() -> tuple[HeldOut, ...]:
    """All windows of ``held_out.json``."""
    text = files(__package__).joinpath("held_out.json").read_text(encoding="utf-8")
    return tuple(HeldOut(*row) for row in json.loads(text)["windows"])


def estimate_doubt(held_out: Collection[HeldOut]) -> Doubt:
    """Estimate the next window's error from those of one kind: of the errors of n windows, the one
    of rank 0.9 (n + 1); of fewer than nine, the largest, in which the next lies with less chance.

    >>> known = [HeldOut("users", f"{n}", "", 1.0, 1, 1 + n / 10, 1.0) for n in range(1, 20)]
    >>> found = [estimate_doubt(known[:n]) for n in (3, 10, 19)]
    >>> [(round(doubt.factor, 2), doubt.chance) for doubt in found]
    [(1.3, 0.75), (2.0, 0.9090909090909091), (2.8, 0.9)]
    """
    errors: dict[str, float] = {}
    for held in held_out:
        errors[held.window] = max(held.log_error, errors.get(held.window, 0.0))
    ranked = sorted(errors.values())
    rank = min(len(ranked), ceil(COVERED * (len(ranked) + 1)))
    (kind,) = {held.kind for held in held_out}
    mean = fsum(abs(held.error) for held in held_out) / len(held_out)
    return Doubt(kind, exp(ranked[rank - 1]), len(ranked), mean, rank / (len(ranked) + 1))


@cache
def doubt_of(kind: Kind) -> Doubt:
    """Return the error that nine of ten published windows of that kind kept within."""
    held_out = [held for held in hold_each_out() if held.kind == kind]
    if held_out:
        return estimate_doubt(held_out)
    known = {held.kind for held in hold_each_out()}
    return Doubt(
        kind, max(doubt_of(other).factor for other in KINDS if other in known), 0, None, None
    )


def in_words(doubts: Iterable[Doubt]) -> str:
    """Explain the ranges of a prediction."""
    known, unknown = [], []
    for doubt in doubts:
        if doubt.mean_error is None or doubt.chance is None:
            unknown.append(doubt.kind)
            continue
        windows = f"{doubt.windows} windows" if doubt.windows > 1 else "one window"
        few = (
            "; of so few the largest, in which the next lies with a chance of"
            f" {percent(doubt.chance, 0)}"
            if doubt.chance < COVERED
            else ""
        )
        known.append(
            f"{_WORDS[doubt.kind]} {doubt.factor:.2f} times ({windows},"
            f" {percent(doubt.mean_error, 0)} off on average{few})"
        )
    text = "From and to: the lowest and highest that the run's repeats give"
    if known:
        text += (
            "; of what the run did not measure they reach as far on either side as nine of ten"
            f" published windows were off: for {', '.join(known)}"
        )
    text += ". None is below no cache, or above flash alone."
    if unknown:
        kinds = " and ".join(_WORDS[kind] for kind in unknown)
        text += (
            f" No published window tells how far off predictions for {kinds} are: the range is the"
            " widest of the other kinds, and may be too narrow."
        )
    return text


def together(kinds: Collection[Kind]) -> float:
    """The factor where several things are other than in the run: their errors add up as those of
    things that have nothing to do with one another.

    >>> together([])
    1.0
    """
    return exp(sqrt(fsum(log(doubt_of(kind).factor) ** 2 for kind in kinds)))

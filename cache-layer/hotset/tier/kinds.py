"""The kinds of tier that there are."""

from __future__ import annotations

from hotset.core.errors import RequestError

from .base import TierKind
from .bcache.kind import BCACHE
from .dmcache.kind import DM_CACHE
from .engine.kind import USERSPACE
from .kind import Kind

KINDS: list[Kind] = [
    DM_CACHE,
    BCACHE,
    USERSPACE,
]
"""One a line."""


def names() -> tuple[TierKind, ...]:
    """List the names of the kinds, in the order of the table."""
    return tuple(kind.name for kind in KINDS)


def kind_of_name(name: str) -> Kind:
    """The kind of that name.

    :raises RequestError: there is none.
    """
    kind = next((kind for kind in KINDS if kind.name == name), None)
    if kind is None:
        raise RequestError(
            f"there is no kind {name!r} of tier: give one of {', '.join(names())}", field="kind"
        )
    return kind


def having(policy: str) -> Kind:
    """The first that can be given a policy.

    :raises RequestError: there is none.
    """
    kind = next((kind for kind in KINDS if policy in kind.policies), None)
    if kind is None:
        raise RequestError(f"no kind of tier has a policy {policy!r}", field="policy")
    return kind

"""Targets that a disk's cache always keeps (pinned), never takes (excluded), or shares.

hotset's own engine keeps to all of it; with the kernel's tiers only warm-ups do, and they know no
shares. Kept as JSON on the disk's machine, so that any hotset that reaches it honours them. They
are targets as the user wrote them: where a table lies is looked up at each plan.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from hotset.core import record
from hotset.core.errors import RequestError
from hotset.core.machines.base import Machine

FOLDER = PurePosixPath("/etc/hotset/warmup")
SCHEMA_VERSION = 1
Kind = Literal["pinned", "excluded"]


class PreferencesError(RequestError):
    """A file that is none of hotset's; the message names it."""


@dataclass(frozen=True, slots=True)
class Share:
    """A target's part of the cache, as the user wrote it: ``30%`` or ``20GiB``."""

    target: str
    guarantee: str
    limit: str


@dataclass(frozen=True, slots=True)
class Preferences:
    """Targets, in the order in which they were named."""

    pinned: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        return (*self.pinned, *self.excluded, *(share.target for share in self.shares))

    def sharing(self, share: Share) -> Preferences:
        """With a share, and nothing else of that target."""
        rest = self.without(share.target)
        return replace(rest, shares=(*rest.shares, share))

    def having(self, kind: Kind, target: str) -> Preferences:
        """With a target of that kind, and of no other."""
        rest = self.without(target)
        if kind == "pinned":
            return replace(rest, pinned=(*rest.pinned, target))
        return replace(rest, excluded=(*rest.excluded, target))

    def kind_of(self, target: str) -> Kind | Literal["shared"] | None:
        """Classify a target; None: none of these."""
        if target in self.pinned:
            return "pinned"
        if target in self.excluded:
            return "excluded"
        return "shared" if any(share.target == target for share in self.shares) else None

    def without(self, target: str) -> Preferences:
        return Preferences(
            tuple(other for other in self.pinned if other != target),
            tuple(other for other in self.excluded if other != target),
            tuple(share for share in self.shares if share.target != target),
        )


def read_preferences(machine: Machine, disk: str) -> Preferences:
    """:raises PreferencesError: the file is none of hotset's; names it."""
    path = _path(disk)
    if machine.run(["test", "-e", str(path)], check=False).rc:
        return Preferences()
    try:
        fields = json.loads(machine.run(["cat", str(path)]).stdout)
        if strange := _strange(fields):
            place = f"{path} on {machine.kind}"
            raise PreferencesError(record.unknown(place, strange, "and pin and share again"))
        shares = tuple(Share(**share) for share in fields["shares"])
        return Preferences(tuple(fields["pinned"]), tuple(fields["excluded"]), shares)
    except PreferencesError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise PreferencesError(
            f"{path} on {machine.kind} is not a list of pinned targets ({error}): remove it and pin"
            " again"
        ) from None


def _strange(fields: dict[str, object]) -> str:
    """Describe an unknown part of a file, which its next change would lose; empty: none."""
    version = fields["schema_version"]
    if version != SCHEMA_VERSION:
        return record.expected_version(version, SCHEMA_VERSION)
    known = [field.name for field in dataclasses.fields(Preferences)]
    return record.strange(fields, ["schema_version", *known])


def save(machine: Machine, disk: str, wanted: Preferences) -> None:
    """Save them atomically."""
    fields = {
        "schema_version": SCHEMA_VERSION,
        "pinned": list(wanted.pinned),
        "excluded": list(wanted.excluded),
        "shares": [asdict(share) for share in wanted.shares],
    }
    machine.replace(json.dumps(fields, indent=1) + "\n", _path(disk), 0o600)


def forget(machine: Machine, disk: str) -> None:
    """Forget a disk that no longer exists: the next of its name begins without pins."""
    machine.run(["rm", "-f", str(_path(disk))])


def _path(disk: str) -> PurePosixPath:
    return FOLDER / f"{disk}.json"

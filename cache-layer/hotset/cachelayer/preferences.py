"""What a disk's warm-ups always take (pinned) and never take (excluded).

Kept as JSON on the disk's machine, beside its card, so that any hotset that reaches the machine
honours it. They are targets as the user wrote them: where a table lies is looked up at each plan.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from hotset.cachelayer.machine import Machine, replace_text

FOLDER = PurePosixPath("/etc/hotset/warmup")
SCHEMA_VERSION = 1
Kind = Literal["pinned", "excluded"]


class PreferencesError(ValueError):
    """A file that is none of hotset's; the message names it."""


@dataclass(frozen=True, slots=True)
class Preferences:
    """Targets, in the order in which they were named."""

    pinned: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def having(self, kind: Kind, target: str) -> Preferences:
        """With a target of that kind, and of no other."""
        rest = self.without(target)
        if kind == "pinned":
            return replace(rest, pinned=(*rest.pinned, target))
        return replace(rest, excluded=(*rest.excluded, target))

    def without(self, target: str) -> Preferences:
        return Preferences(
            tuple(one for one in self.pinned if one != target),
            tuple(one for one in self.excluded if one != target),
        )


def of(machine: Machine, disk: str) -> Preferences:
    """:raises PreferencesError: the file is none of hotset's; names it."""
    path = _path(disk)
    if machine.run(["test", "-e", str(path)], check=False).rc:
        return Preferences()
    try:
        fields = json.loads(machine.run(["cat", str(path)]).stdout)
        if fields["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version {fields['schema_version']!r} is unknown")
        return Preferences(tuple(fields["pinned"]), tuple(fields["excluded"]))
    except (ValueError, KeyError, TypeError) as error:
        raise PreferencesError(
            f"{path} on {machine.kind} is no list of pinned targets ({error}): remove it and pin"
            " again"
        ) from None


def save(machine: Machine, disk: str, wanted: Preferences) -> None:
    """Keep them; whole or not at all."""
    fields = {"schema_version": SCHEMA_VERSION, "pinned": list(wanted.pinned),
              "excluded": list(wanted.excluded)}  # fmt: skip
    replace_text(machine, json.dumps(fields, indent=1) + "\n", _path(disk))


def _path(disk: str) -> PurePosixPath:
    return FOLDER / f"{disk}.json"

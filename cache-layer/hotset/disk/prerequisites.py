"""Prerequisites of a tier on a machine, checked before anything is written: also those of a later
boot, repair or detach."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.machines.programs import PROGRAMS, lacking_argv
from hotset.tier import kinds
from hotset.tier.base import TierKind


def require(machine: Machine, kind: TierKind) -> None:
    """:raises PrerequisiteMissingError: the machine cannot have a tier of that kind; names all that
    is missing and what installs it."""
    lacks = list(lacking(machine, kind))
    if lacks:
        raise PrerequisiteMissingError(
            f"{machine.kind} lacks what a cache of kind {kind} needs: {'; '.join(lacks)}",
            *kinds.kind_of_name(kind).instead,
        )


def lacking(machine: Machine, kind: TierKind) -> Iterator[str]:
    """List missing prerequisites of a kind of tier. The kernel's modules are loaded, by root."""
    known = kinds.kind_of_name(kind)
    missing = machine.run(lacking_argv(known.programs)).stdout.split()
    for package, names in groupby(missing, lambda name: PROGRAMS[name].package):
        yield f"{', '.join(names)} (apt-get install {package})"
    for look in known.looks:
        try:
            look(machine)
        except PrerequisiteMissingError as error:
            yield str(error)
            return

"""Engines for tests of the lab."""

from __future__ import annotations

import pytest

from hotset.block import programs
from hotset.tier.devices import Action, Devices

_NEVER = "s/ --mount / --dirty-target 100 --mount /"


def never_clean(patch: pytest.MonkeyPatch) -> None:
    """Engines write nothing back of their own accord, which one that is idle does soon."""
    perform = Devices.perform

    def patched(self: Devices, action: Action) -> str:
        said = perform(self, action)
        if self.kind == "userspace" and action in ("open", "install"):
            script = str(programs.script_of(self.place.name))
            self.machine.run(["sh", "-c", f"sed -i '/exec /{_NEVER}' {script}"])
        return said

    patch.setattr(Devices, "perform", patched)

"""A lab of a test file's own, shared by all its tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec
from hotset.lab.machines.guest import Guest
from hotset.lab.machines.quick import quick


@contextmanager
def own_lab(factory: pytest.TempPathFactory, spec: LabSpec) -> Iterator[Lab]:
    """It stands in a state folder that no other test and no user has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(factory.mktemp("state")))
        with labs.running(spec, "test", print) as lab:
            yield lab


@contextmanager
def quick_lab(factory: pytest.TempPathFactory, spec: LabSpec) -> Iterator[Lab]:
    """The same for tests whose commands all end, and that do not cut its power: each costs less."""
    with own_lab(factory, spec) as lab:
        assert isinstance(lab.machine, Guest)
        with quick(lab.machine) as machine:
            yield replace(lab, machine=machine)


class SharedLab:
    """A lab for one test after the other: one whose machine died is raised again for the next."""

    def __init__(self, factory: pytest.TempPathFactory, spec: LabSpec) -> None:
        self._factory = factory
        self._spec = spec
        self._stack = ExitStack()
        self._lab: Lab | None = None

    def __enter__(self) -> SharedLab:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def lab(self) -> Lab:
        """A lab whose machine is alive."""
        if self._lab is not None and not _alive(self._lab):
            self._lab = None
            self._stack.close()
        if self._lab is None:
            self._lab = self._stack.enter_context(own_lab(self._factory, self._spec))
        return self._lab


def _alive(lab: Lab) -> bool:
    return not isinstance(lab.machine, Guest) or lab.machine.alive()

"""A lab of a test file's own, raised once for all its tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hotset.cachelayer import lab as labs
from hotset.cachelayer.lab import Lab, LabSpec


@contextmanager
def own_lab(factory: pytest.TempPathFactory, spec: LabSpec) -> Iterator[Lab]:
    """It stands in a state folder that no other test and no user has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(factory.mktemp("state")))
        with labs.standing(spec, "test", print) as lab:
            yield lab

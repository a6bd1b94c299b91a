"""What an arm mounts goes away again."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from hotset.core.machines.base import Command, CommandError, Result
from hotset.experiment.site import context
from tests.fake_machine import FakeMachine

AT = PurePosixPath("/run/hotset-experiment/data")


class Busy(FakeMachine):
    """A machine on which something is still open for the first few tries."""

    def __init__(
        self, tries: float, says: str = "umount: /run/hotset-experiment/data: target is busy."
    ) -> None:
        super().__init__()
        self.tries = tries
        self.says = says

    def execute(self, command: Command) -> Result:
        super().execute(command)
        refused = len(self.calls) <= self.tries
        return Result(command.argv, 32 if refused else 0, "", self.says if refused else "", 0.0)


def test_a_server_that_is_on_its_way_out_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_BUSY_POLL_S", 0)
    machine = Busy(3)
    context.unmount(machine, AT)
    assert len(machine.calls) == 4


@pytest.mark.parametrize(
    "says", ["umount: /run/hotset-experiment/data: target is busy.", "umount: I/O error"]
)
def test_what_stays_in_use_or_fails_is_told(monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    monkeypatch.setattr(context, "_BUSY_POLL_S", 0)
    monkeypatch.setattr(context, "_BUSY_LIMIT_S", 0.01)
    with pytest.raises(CommandError, match=says.rsplit(": ", maxsplit=1)[-1].strip(".")):
        context.unmount(Busy(float("inf"), says), AT)

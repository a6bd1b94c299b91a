"""Commands on a guest by one program that stays, without a guest."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from hotset.core.machines.local import Local
from hotset.lab.machines.quick import QuickGuest


def test_after_ctrl_c_no_command_gets_the_answer_of_another() -> None:
    """What cleared up afterwards took the late answer for its own."""

    def ask(line: str, _limit_s: float) -> str:
        if "sleep" in line:
            raise KeyboardInterrupt
        return json.dumps([0, "of another\n", ""])

    machine = QuickGuest(cast("Any", Local()), ask)
    assert machine.run(["sh", "-c", "echo own"]).stdout == "of another\n"
    with pytest.raises(KeyboardInterrupt):
        machine.run(["sh", "-c", "sleep 9"])
    assert machine.run(["sh", "-c", "echo own"]).stdout == "own\n"

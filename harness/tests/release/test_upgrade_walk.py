"""The walk between two versions (`scripts/upgrade_walk.py`), apart from the walk itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hotset.tier.engine.control import PROTOCOL
from upgrade import walk
from upgrade.record import Record, UnmetError, table
from upgrade.versions import ROOT, Version

WORDS = (*walk.READING, *walk.CHANGING, *walk.ON_A_LATER_CARD)


def test_a_step_that_is_not_met_ends_neither_the_walk_nor_in_success() -> None:
    record = Record()
    assert not record.all_met, "a walk without a step"
    with record.in_part("first"), record.step("a | b", "due"):
        record.note("so | so")
    assert record.all_met
    with record.in_part("second"):
        with record.step("this", "due"):
            raise UnmetError("it is another")
        with record.step("that", "due"):
            pass
        raise UnmetError("it cannot go on")
    found = [(one.part, one.met, one.found) for one in record.steps]
    assert found == [
        ("first", True, "so | so"),
        ("second", False, "UnmetError: it is another"),
        ("second", True, "so it is"),
        ("second", False, "UnmetError: it cannot go on"),
    ]
    assert not record.all_met
    assert "so \\| so" in table(record.steps)
    assert table(record.steps).count("**unmet**") == 2


def test_the_walk_gives_no_command_that_there_is_not() -> None:
    """It took one that was gone for one that refuses."""
    reference = (ROOT / "docs/reference/cli.md").read_text()
    known = {tuple(one.split()) for one in re.findall(r"^## hotset (.*)$", reference, re.MULTILINE)}
    assert [words for words in WORDS if not any(words[: len(one)] == one for one in known)] == []


@pytest.mark.parametrize("crate", ["daemon", "engine"])
def test_what_a_version_speaks_is_read_from_its_source(tmp_path: Path, crate: str) -> None:
    of_this = Version("this", "", ROOT, tmp_path, tmp_path)
    assert of_this.protocol == PROTOCOL
    before = Version("before", "", tmp_path, tmp_path, tmp_path)
    file = tmp_path / f"cache-layer/flashdev/{crate}/src/tier/protocol.rs"
    file.parent.mkdir(parents=True)
    file.write_text("pub(super) struct Answer;\n")
    assert before.protocol == 1, "its answers carry no number"
    file.write_text("pub(super) const PROTOCOL: u32 = 7;\n")
    assert before.protocol == 7

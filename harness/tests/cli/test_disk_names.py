"""A disk is named in one way by every command, and where one has to be named, how is said."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from hotset import cli
from hotset.core import errors
from hotset.core.machines import names
from hotset.operations import table
from tests.support.flash_devices import FLASH, Keeping, disk

TREE = typer.main.get_command(cli.create())
OF_A_DISK = [one.words for one in table.every() if "disk" in one.request.model_fields]
# Without a name, these are of all disks.
OF_ALL = {("tier", "activate"), ("tier", "health"), ("tier", "status"), ("report", "history")}
CHOOSING = [
    "heat map",
    "heat start",
    "heat stop",
    "heat top",
    "report hit-ratio",
    "tier explain /srv/a",
    "tier flush",
    "tier resident",
    "tier watch 1 1",
    "warmup exclude /srv/a",
    "warmup list",
    "warmup pin /srv/a",
    "warmup plan /srv/a",
    "warmup refresh",
    "warmup restore /dev/null",
    "warmup run /srv/a",
    "warmup share /srv/a --limit 25%",
    "warmup snapshot --output /srv/hot",
    "warmup unpin /srv/a",
    "whatif flash",
]


def _command(words: tuple[str, ...]) -> Any:  # noqa: ANN401 - click's own
    found: Any = TREE
    for word in words:
        found = found.commands[word]
    return found


@pytest.mark.parametrize("words", [*OF_A_DISK, ("tier", "watch")])
def test_every_command_of_a_disk_takes_it_by_the_same_option(words: tuple[str, ...]) -> None:
    """`warmup plan` took `--disk`, `warmup list` refused it."""
    assert "--disk" in [name for one in _command(words).params for name in one.opts]


def _refused(words: list[str]) -> str:
    done = CliRunner().invoke(cli.create(), words)
    assert isinstance(done.exception, errors.HotsetError), (done.output, done.exception)
    return errors.of_command_line(done.exception, words)


@pytest.fixture
def _two_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Keeping()
    there.keep(FLASH.with_disk(disk("dwh", 100)))

    monkeypatch.setattr(names, "open_machine", lambda *_: nullcontext(there))


@pytest.mark.usefixtures("_two_disks")
@pytest.mark.parametrize("typed", CHOOSING)
def test_several_disks_are_refused_with_the_command_to_type(typed: str) -> None:
    """`several disks are accelerated, name one of: lab, shop` said not how."""
    words = shlex.split(typed)
    text = _refused(words)
    command = f"hotset {typed} --disk data"
    assert text.endswith(f"several disks are accelerated: data, dwh; to name one: `{command}`")
    assert "several disks" not in _refused([*words, "--disk", "none"])
    assert "'none' is not accelerated" in _refused([*words, "--disk", "none"])


@pytest.mark.usefixtures("_two_disks")
def test_a_disk_that_must_be_named_is_named_by_its_place_or_by_the_option() -> None:
    for words in (["none"], ["--disk", "none"], ["none", "--disk=none"]):
        assert "'none' is not accelerated" in _refused(["tier", "deactivate", *words])
    text = "data and --disk dwh are two disks: name one"
    assert _refused(["tier", "deactivate", "data", "--disk", "dwh"]) == text
    assert "tier deactivate needs the name of the disk: data, dwh" in _refused(
        ["tier", "deactivate"]
    )


def test_a_new_disk_needs_a_name() -> None:
    words = ["--flash", "/dev/f", "--origin", "/dev/o", "--cache", "1GiB", "--database", "oltp"]
    assert _refused(["tier", "create", *words]) == "tier create needs a name for the disk"


def test_what_chooses_a_disk_is_tried_above() -> None:
    tried = {tuple(typed.split()[:2]) for typed in CHOOSING}
    named = {
        one.words
        for one in table.every()
        if (field := one.request.model_fields.get("disk")) and field.is_required()
    }
    # Of these a machine that stands in is not enough: they are root's, or ask for systemd.
    alone = {("tier", "resize"), ("tier", "set"), ("warmup", "schedule", "add")}
    assert set(OF_A_DISK) - named - OF_ALL - tried == alone

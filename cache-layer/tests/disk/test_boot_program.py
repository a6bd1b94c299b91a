"""`hotset-boot` itself, on files: it reads what hotset writes, and decides by that alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import flashdev, label, programs
from hotset.core.errors import PrerequisiteError
from hotset.core.machines.base import Result
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.disk import flash_devices, state
from hotset.disk.boot import program
from hotset.disk.flash_devices import AttachedDisk, Disk, FlashDevice
from hotset.disk.identity.origin import OriginId
from hotset.tier.base import TierKind, WriteMode
from tests.fake_machine import FakeMachine
from tests.support.flash_devices import FLASH, MIB, disk

HERE = Local()
ORIGIN_BYTES = 64 * MIB


class OnFiles:
    """A disk whose flash and origin are files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.flash, self.origin = folder / "flash", folder / "origin"
        for path, size in ((self.flash, 256 * MIB), (self.origin, ORIGIN_BYTES)):
            with path.open("wb") as file:
                file.truncate(size)
        self.disk = replace(
            disk(),
            kind="userspace",
            origin=PurePosixPath(self.origin),
            origin_id=OriginId(Bytes(ORIGIN_BYTES)),
            identity="11111111-2222-3333-4444-555555555555",
            record=5,
        )
        self.save(self.disk)

    @property
    def device(self) -> FlashDevice:
        path = PurePosixPath(self.flash)
        return replace(FLASH, path=path, uuid="u", host="h", disks=(self.disk,))

    def save(self, changed: Disk) -> None:
        self.disk, before = changed, label.read(HERE, self.device.path)
        generation = before.generation + 1 if before else 1
        text = flash_devices.render(replace(self.device, generation=generation))
        label.write(HERE, self.device.path, label.Label(generation, text))

    def run(self, *words: str) -> Result:
        boot = flashdev.program(HERE).with_name(programs.BOOT)
        verb, *rest = words
        argv = [str(boot), verb, "--flash", str(self.flash), self.disk.name, *rest]
        return HERE.run(argv, check=False)

    def leave(self, word: state.Word) -> None:
        assert self.run("mark", word).rc == 0
        attached = AttachedDisk(HERE, self.device, self.disk)
        assert state.read(attached) == word, "both read what one writes"

    def decided(self) -> tuple[str, str, str]:
        done = self.run("decide")
        assert done.rc == 0, done.stderr
        verdict = program.Verdict(**json.loads(done.stdout))
        return verdict.action, verdict.reason, verdict.origin

    def write_to_the_origin(self, at: int) -> None:
        with self.origin.open("r+b") as file:
            file.seek(at)
            file.write(b"somebody")


@pytest.fixture
def there(tmp_path: Path) -> OnFiles:
    return OnFiles(tmp_path)


def start(there: OnFiles, kind: TierKind, mode: WriteMode) -> None:
    there.save(replace(there.disk, kind=kind, spec=replace(there.disk.spec, mode=mode)))


def test_what_was_left_as_it_is_comes_up(there: OnFiles) -> None:
    words: tuple[state.Word, ...] = ("clean", "dirty", "active")
    for word in words:
        there.leave(word)
        assert there.decided() == ("start", "none", "same")


def test_a_disk_that_is_being_detached_stays_down_at_boot(there: OnFiles) -> None:
    """It came up again after a power cut, was written to, and the next detach discarded that."""
    there.leave("clean")
    for phase, end in (("detaching", "detach it again"), ("creating", "create it again")):
        there.save(replace(there.disk, phase=phase))  # type: ignore[arg-type]
        assert there.decided()[:2] == ("refuse", "unfinished")
        assert end in there.run("decide").stdout


BEHIND_THE_HEAD = 32 * MIB


def rewritten(there: OnFiles) -> None:
    there.write_to_the_origin(BEHIND_THE_HEAD)


def rewritten_and_dated_back(there: OnFiles) -> None:
    """As `rsync -t` and `cp -p` of a backup do."""
    there.write_to_the_origin(BEHIND_THE_HEAD)
    os.utime(there.origin, (1, 1))


def replaced(there: OnFiles) -> None:
    """By another of the same size and time."""
    before, other = there.origin.stat(), there.folder / "other"
    other.write_bytes(there.origin.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(there.origin)


@pytest.mark.parametrize("change", [rewritten, rewritten_and_dated_back, replaced])
def test_a_change_behind_the_first_mebibyte_is_seen(
    there: OnFiles, change: Callable[[OnFiles], None]
) -> None:
    """Neither an earlier time nor another boot makes it the same."""
    there.leave("clean")
    change(there)
    assert there.decided() == ("empty", "none", "changed")
    start(there, "userspace", "writeback")
    there.leave("dirty")
    change(there)
    assert there.decided() == ("refuse", "conflict", "changed")


def test_a_tier_that_ended_by_a_crash_is_not_laid_over_what_was_written_since(
    there: OnFiles,
) -> None:
    there.leave("active")
    there.write_to_the_origin(BEHIND_THE_HEAD)
    assert there.decided() == ("refuse", "conflict", "unknown")
    there.leave("active")  # what --keep-flash does
    assert there.decided() == ("start", "none", "same")


def test_the_mode_is_the_labels(there: OnFiles) -> None:
    """A script of before the change dropped what was dirty."""
    there.leave("active")
    there.write_to_the_origin(0)
    start(there, "userspace", "writethrough")
    assert there.decided() == ("empty", "none", "unknown")
    start(there, "userspace", "writeback")
    assert there.decided()[0] == "refuse"


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("HOTSET-LABEL 9", "version 9"),
        ("HOTSET-LABEL 0", "version 0"),
        ("HOTSET-FLASH-LABEL 1", "before its first release"),
        ("HOTSET-CARD-LABEL 1", "before its first release"),
    ],
)
@pytest.mark.parametrize("places", [(256,), (320,), (256, 320)])
def test_a_flash_that_nobody_here_understands_is_left_alone(
    there: OnFiles, head: str, words: str, places: tuple[int, ...]
) -> None:
    with there.flash.open("r+b") as file:
        for at in places:
            file.seek(at * 1024)
            file.write(f"{head} 1 2 x\n{{}}".encode().ljust(4096))
    before = there.flash.read_bytes()
    for verb in (("decide",), ("mark", "clean"), ("start",)):
        done = there.run(*verb)
        assert (done.rc, words in done.stderr) == (4, True), done.stderr
    for act in (
        lambda: label.read(HERE, there.device.path),
        lambda: label.write(HERE, there.device.path, label.Label(9, "{}")),
    ):
        with pytest.raises(label.LabelError, match=words):
            act()
    assert there.flash.read_bytes() == before


def test_names_that_differ_in_case_or_by_an_ending_are_two_disks(there: OnFiles) -> None:
    other = replace(there.disk, name="data-2", record=6, identity="other")
    there.leave("clean")
    text = flash_devices.render(replace(there.device, disks=(other, there.disk), generation=9))
    label.write(HERE, there.device.path, label.Label(9, text))
    assert there.decided() == ("start", "none", "same")
    there.disk = replace(there.disk, name="DATA")
    assert "has no disk of that name" in there.run("decide").stderr
    there.disk = other
    assert there.decided() == ("refuse", "conflict", "unknown"), "it was never left in any way"


@pytest.mark.parametrize("verb", [("decide",), ("mark", "clean"), ("start",)])
def test_a_disk_of_a_kind_that_a_boot_does_not_know_is_left_alone(
    there: OnFiles, verb: tuple[str, ...]
) -> None:
    """Of a later hotset's, for instance. It was taken for one with an engine, and where it had to
    begin empty its flash was written over with that engine's metadata before it was refused."""
    there.leave("clean")
    there.save(replace(there.disk, kind="dram"))  # type: ignore[arg-type]
    done = there.run(*verb)
    assert (done.rc != 0, done.stdout) == (True, "")
    assert 'its kind is "dram", which this hotset-boot does not know' in done.stderr


def test_what_lies_on_an_origin_is_known_by_its_uuid(there: OnFiles) -> None:
    boot = flashdev.program(HERE).with_name(programs.BOOT)
    argv = [str(boot), "content", str(there.origin)]
    assert HERE.run(argv).stdout.strip() == ""
    uuid = "5f3c9f4e-7a0e-4d8e-9d53-0a1f1c7f4b00"
    HERE.run(["mke2fs", "-q", "-F", "-t", "ext4", "-U", uuid, str(there.origin)])
    assert HERE.run(argv).stdout.strip() == uuid.replace("-", "")


def test_every_write_to_an_origin_is_seen(there: OnFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "boot", lambda _: str(programs.find_boot()))
    before = programs.count_writes(HERE, PurePosixPath(there.origin))
    there.write_to_the_origin(4096)
    assert programs.count_writes(HERE, PurePosixPath(there.origin)) != before
    silent = FakeMachine({"hotset-boot writes": "uncounted\n"})
    with pytest.raises(PrerequisiteError, match=r"queue/iostats is 0"):
        programs.count_writes(silent, PurePosixPath("/dev/sda"))

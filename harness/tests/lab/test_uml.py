"""User-Mode Linux: its command line, what it refuses, and what is tried before it is taken."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hotset.core.machines.base import MachineGoneError, PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.lab import image
from hotset.lab import lab as labs
from hotset.lab.image import Image
from hotset.lab.lab import LabSpec
from hotset.lab.machines import uml, uml_package
from hotset.lab.machines.guest import READY, Disk, Files, KernelPanicError, wait_until_ready
from hotset.lab.machines.uml import Kernel, UmlSpec

GIB = 1024**3
IMAGE = Image(Path("/images/key"))
KERNEL = Kernel(Path("/kernels/7.2um1"))
ENTER = ("nsenter", "--target=7", "--net")


def argv() -> list[str]:
    disks = (Disk("flash", Path("/lab/flash.img")), Disk("saved", Path("/lab/saved.img"), True))
    return uml.kernel_argv(IMAGE, KERNEL, UmlSpec(Bytes(2 * GIB), disks), ENTER, Path("/lab/cow"))


def program(folder: Path, name: str, script: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/bash\n{script}\n")
    file.chmod(0o755)
    return file


def test_the_image_stays_frozen_and_disks_have_names() -> None:
    words = argv()
    assert "ubd0=/lab/cow,/images/key/root.ext4" in words
    assert "ubd1=/lab/flash.img" in words
    assert "ubd2r=/lab/saved.img" in words, "what is read-only stays so"
    assert [word for word in words if word.startswith("hotset.disk=")] == [
        "hotset.disk=ubdb:flash",
        "hotset.disk=ubdc:saved",
    ]


def test_the_guest_sees_its_modules_and_nothing_else_of_this_computer() -> None:
    assert [word for word in argv() if word.startswith("hostfs")] == [
        "hostfs=/kernels/7.2um1/modules"
    ]


def test_its_memory_is_mounted_where_the_lab_is() -> None:
    words = argv()
    assert words[:3] == list(ENTER), "in the lab's network"
    assert "mem=2048M" in words
    at = words.index("hotset-uml")
    assert words[at + 1 : at + 4] == ["/images/key/library", "2048", "/lab/memory"]


@pytest.mark.parametrize(("tap", "card"), [(True, "tap,ifname=lab0"), (False, "raw,ifname=lab1")])
def test_its_card_is_a_tap_device_where_that_may_be(
    monkeypatch: pytest.MonkeyPatch, tap: bool, card: str
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: tap if path == "/dev/net/tun" else True)
    (found,) = (word for word in argv() if word.startswith("vec0:"))
    assert found.startswith(f"vec0:transport={card},")
    assert ("veth" in uml.network_argv()[-6]) is not tap
    assert ",mac=" in found, "a new one after a power cut would not be found for half a minute"


@pytest.mark.parametrize(
    ("user", "words"), [(0, ("--net",)), (1000, ("--user", "--preserve-credentials", "--net"))]
)
def test_an_ordinary_user_has_a_user_namespace(
    monkeypatch: pytest.MonkeyPatch, user: int, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert uml.enter(7) == ("nsenter", "--target=7", *words)
    assert ("--map-root-user" in uml.network_argv()) == bool(user)


def test_more_memory_than_is_free_is_refused(tmp_path: Path) -> None:
    spec = UmlSpec(Bytes(1024**5), ())
    with pytest.raises(PrerequisiteMissingError, match=r"machine.memory = .* lower machine.memory"):
        uml.boot(Local(), IMAGE, KERNEL, spec, uml.Network((), {}), tmp_path,
                 Cleanup(tmp_path, Local()))  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("user", "remedy"), [(0, "network and mount namespaces"), (1000, "run hotset as root, or")]
)
def test_a_computer_without_namespaces_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, remedy: str
) -> None:
    program(tmp_path, "unshare", "echo 'unshare failed: Operation not permitted' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    lacks = uml.lacking()
    assert lacks is not None
    assert remedy in lacks
    assert "Operation not permitted" in lacks
    with pytest.raises(PrerequisiteMissingError, match=r"'uml' is not possible .*namespaces"):
        labs.choose("uml")


def test_another_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert uml.lacking() == "Debian has its package for x86-64 alone, this is aarch64"


def built(tmp_path: Path, kernel_says: str) -> tuple[Image, Kernel]:
    """An image and a kernel that only says something and ends."""
    image = Image(tmp_path / "image")
    image.library.mkdir(parents=True)
    kernel = Kernel(tmp_path / "6.1um4")
    kernel.folder.mkdir()
    program(kernel.folder, "linux.uml", f"echo '{kernel_says}'")
    return image, kernel


REFUSES = "Kernel panic - not syncing: ptrace set fp regs failed, errno = 14"


@pytest.fixture
def no_namespaces_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is started as it is: what is tested is what comes of its words."""
    monkeypatch.setattr(uml, "_hold_namespaces", lambda *_: ())
    started = uml.kernel_argv

    def plain(*args: object) -> list[str]:
        words = started(*args)  # type: ignore[arg-type]
        return words[words.index("hotset-uml") + 4 :]

    monkeypatch.setattr(uml, "kernel_argv", plain)


@pytest.mark.usefixtures("no_namespaces_needed")
def test_a_kernel_that_does_not_boot_here_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, kernel = built(tmp_path, REFUSES)
    told = f"user-mode-linux 6.1um4 does not boot here: {REFUSES}"
    monkeypatch.setattr("hotset.core.machines.local.check_declared", lambda argv, _: tuple(argv))
    assert uml.probe(Local(), image, kernel) == told
    kernel.program.unlink()
    assert uml.probe(Local(), image, kernel) == told, "it is not tried again before a restart"


@pytest.mark.usefixtures("no_namespaces_needed")
def test_a_kernel_that_boots_here_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000"
    monkeypatch.setattr("hotset.core.machines.local.check_declared", lambda argv, _: tuple(argv))
    assert uml.probe(Local(), *built(tmp_path, ended)) is None


@pytest.mark.parametrize("failure", ["boot", "fetch"])
def test_the_next_machine_is_taken_instead_unless_this_one_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    def ensure(*_: object) -> Kernel:
        if failure == "fetch":
            raise PrerequisiteMissingError("the archive does not answer")
        return KERNEL

    taken = "the archive does not answer" if failure == "fetch" else REFUSES
    monkeypatch.setattr(uml, "ensure", ensure)
    monkeypatch.setattr(uml, "probe", lambda *_: REFUSES)
    monkeypatch.setattr(uml, "lacking", lambda: None)
    monkeypatch.setattr(image, "ensure", lambda *_: IMAGE)
    monkeypatch.setattr(labs.qemu, "has_kvm", lambda *_: False)
    monkeypatch.setattr(labs, "kernel_has_dm_cache", lambda: False)
    monkeypatch.setattr(labs, "_vm_lab", lambda *_: "vm")
    said: list[str] = []

    def raised(machine: labs.MachineChoice, guest: bool) -> object:
        spec = LabSpec(machine, 1, Bytes(GIB), Bytes(GIB), tier="dm-cache", guest=guest)
        return labs.raise_lab(spec, tmp_path, Cleanup(tmp_path, Local()), said.append)

    assert raised("auto", guest=True) == "vm"
    assert taken in said[-1]
    with pytest.raises(PrerequisiteMissingError, match=f"'uml' is not possible .*{taken}"):
        raised("uml", guest=True)
    with pytest.raises(PrerequisiteMissingError, match=f"nothing else does: {taken}"):
        raised("auto", guest=False)


def test_a_machine_that_panics_while_it_boots_says_so(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.console.write_text(f"Linux version 7.2.7\n{REFUSES}\nStack:\n")
    with pytest.raises(KernelPanicError, match="errno = 14"):
        wait_until_ready(files, files.console, lambda: 1, 1.0)


def test_a_machine_that_boots_slowly_is_waited_for_as_long_as_it_says_something(
    tmp_path: Path,
) -> None:
    files = Files(tmp_path)
    files.console.write_text("Linux version 7.2.7\n")

    def boot() -> None:
        for _ in range(6):
            time.sleep(0.15)
            with files.console.open("a") as console:
                console.write("one more word\n")
        with files.console.open("ab") as console:
            console.write(READY)

    booting = threading.Thread(target=boot)
    booting.start()
    wait_until_ready(files, files.console, lambda: None, 0.5)
    booting.join()
    files.console.write_text("Linux version 7.2.7\n")
    with pytest.raises(MachineGoneError, match="did not come up"):
        wait_until_ready(files, files.console, lambda: None, 0.1)


def test_the_last_words_begin_with_the_panic(tmp_path: Path) -> None:
    files = Files(tmp_path)
    assert files.last_words() == ""
    trace = [f" [<{number:08x}>] frame" for number in range(60)]
    files.console.write_text("\n".join(["hello", REFUSES, *trace]))
    assert files.last_words().splitlines()[0] == REFUSES
    files.console.write_text("\n".join(str(number) for number in range(60)))
    assert files.last_words().splitlines()[-1] == "59"


# The package


def an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that have the package; what apt-get was called with is written down."""
    log = tmp_path / "log"
    program(
        tmp_path,
        "apt-get",
        f'echo "$@" >> {log}; case "$*" in *download*) touch user-mode-linux_7.2um1_amd64.deb;;'
        " esac; for word in $@; do case $word in"
        f" Dir::Etc::SourceParts=*) cat ${{word#*=}}/* >> {log};; esac; done",
    )
    program(
        tmp_path,
        "dpkg-deb",
        "mkdir -p $3/usr/bin $3/usr/lib/uml/modules/7.2.7; echo it > $3/usr/bin/linux.uml",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return log


def test_who_wants_it_at_the_same_time_waits_for_the_one_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    an_archive(tmp_path, monkeypatch)
    said: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(uml_package.ensure, Local(), IMAGE, said.append) for _ in range(4)]
        found = {call.result() for call in calls}
    assert found == {uml_package.find_fetched()}
    assert len(said) == 1


def test_the_package_is_fetched_by_apt_with_the_images_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = an_archive(tmp_path, monkeypatch)
    said: list[str] = []
    assert uml_package.find_fetched() is None
    kernel = uml_package.ensure(Local(), IMAGE, said.append)
    assert kernel.version == "7.2um1"
    assert kernel.program.read_text() == "it\n"
    assert (kernel.modules / "7.2.7").is_dir()
    words = log.read_text()
    assert "Signed-By: /images/key/debian-archive-keyring.gpg" in words
    assert "Dir::Etc::SourceList=/dev/null" in words, "none of this computer's own sources"
    assert "allow-unauthenticated" not in words.lower()
    assert "trusted" not in words.replace("Dir::Etc::TrustedParts=/dev/null", "").lower()
    assert len(said) == 1
    log.unlink()
    assert uml_package.ensure(Local(), IMAGE, said.append) == kernel == uml_package.find_fetched()
    assert not log.exists(), "it is fetched once"


def test_a_package_that_cannot_be_had_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "apt-get", "echo 'E: The repository is not signed.' >&2; exit 100")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(PrerequisiteMissingError, match=r"could not be had: .*is not signed"):
        uml_package.ensure(Local(), IMAGE, print)
    assert list(uml_package.shelf().iterdir()) == []

"""What the lab is made of, without one: image, call of the virtual machine, network, slow disk."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block import flashdev, loop, programs
from hotset.core import paths
from hotset.core.machines.base import CommandError, PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.machines.ssh import _line
from hotset.core.units import Bytes
from hotset.lab import image
from hotset.lab import lab as labs
from hotset.lab import slow_disk as storage
from hotset.lab.image import Image
from hotset.lab.machines import chroot, qemu, uml
from hotset.lab.machines.guest import Disk, disk_path
from hotset.lab.machines.qemu import VmSpec, accel_argv, qemu_argv
from hotset.lab.slow_disk import Iscsi, ModelledStorage, Portal, Target
from tests.fake_machine import FakeMachine

GIB = 2**30


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the recipe that may be changed."""
    folder = tmp_path / "recipe"
    shutil.copytree(image._RECIPE, folder)
    monkeypatch.setattr(image, "_RECIPE", folder)
    return folder


# The image


@pytest.mark.parametrize("file", ["packages.txt", "hotset-init"])
def test_another_recipe_is_another_image(recipe: Path, file: str) -> None:
    before = image.recipe_key()
    assert image.recipe_key() == before
    with (recipe / file).open("a") as out:
        out.write("one-more\n")
    assert image.recipe_key() != before


def test_a_comment_changes_nothing(recipe: Path) -> None:
    before = image.recipe_key(), image.packages()
    with (recipe / "packages.txt").open("a") as out:
        out.write("\n# a word about it\n\n")
    assert (image.recipe_key(), image.packages()) == before


def test_the_image_holds_all_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOTSET_DEBIAN_MIRROR", raising=False)
    argv = image.bootstrap_argv(tmp_path, tmp_path / "root", "unshare")
    assert argv[:2] == ["mmdebstrap", "--mode=unshare"]
    (included,) = [word for word in argv if word.startswith("--include=")]
    assert included.removeprefix("--include=").split(",") == image.packages()
    needed = {"dmsetup", "thin-provisioning-tools", "open-iscsi", "openssh-server"}
    assert needed <= set(image.packages())
    assert argv[-2:] == [image.SUITE, str(tmp_path / "root")]


def test_another_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSET_DEBIAN_MIRROR", "http://mirror.example/debian")
    argv = image.bootstrap_argv(tmp_path, tmp_path / "root", "root")
    assert argv[-3:] == [image.SUITE, str(tmp_path / "root"), "http://mirror.example/debian"]


def test_a_build_that_fails_leaves_nothing_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "mmdebstrap"
    stub.write_text(
        '#!/bin/sh\n[ "$1" = --unshare-helper ] && { shift; exec "$@"; }\n'
        "echo E: no such mirror >&2\nexit 25\n"
    )
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(CommandError, match="no such mirror"):
        image.ensure(Local(), lambda _: None)
    assert list((paths.cache_dir() / "image").iterdir()) == []
    assert image.find_built() is None


def test_a_built_image_is_found() -> None:
    built = Image(paths.cache_dir() / "image" / image.recipe_key())
    built.folder.mkdir(parents=True)
    assert image.find_built() is None
    built.root_disk.touch()
    assert image.find_built() == built
    assert image.ensure(Local(), print) == built
    assert built.key == image.recipe_key()


# The virtual machine


def machine_argv(tap: tuple[str, str] | None = None) -> list[str]:
    disks = (Disk("flash", Path("/lab/flash.img")), Disk("saved", Path("/lab/saved.img"), True))
    spec = VmSpec("tcg", 3, Bytes(2 * GIB), disks, tap)
    return qemu_argv(Image(Path("/images/key")), spec, {22: 40022, 5432: 45432}, Path("/lab/log"))


def options(argv: list[str], name: str) -> list[str]:
    return [value for option, value in pairwise(argv) if option == name]


def test_the_image_stays_frozen() -> None:
    drives = options(machine_argv(), "-drive")
    root = next(drive for drive in drives if "root.ext4" in drive).split(",")
    assert {"file=/images/key/root.ext4", "format=raw", "snapshot=on"} <= set(root)


def test_disks_have_serials_and_keep_what_is_read_only() -> None:
    argv = machine_argv()
    drives = {drive.split(",")[0]: drive for drive in options(argv, "-drive")}
    assert ",readonly=on" in drives["file=/lab/saved.img"]
    assert "readonly" not in drives["file=/lab/flash.img"]
    assert "snapshot" not in drives["file=/lab/flash.img"]
    devices = options(argv, "-device")
    for serial in ("flash", "saved"):
        assert any(f"drive={serial},serial={serial}" in device for device in devices)
    assert PurePosixPath("/dev/disk/by-id/lab-flash") == disk_path("flash") == labs.FLASH_DISK
    assert PurePosixPath("/dev/disk/by-id/lab-saved") == labs.SAVED_DISK


def test_a_full_disk_of_this_computer_is_an_error_in_the_machine_and_no_standstill() -> None:
    disks = [word for word in options(machine_argv(), "-device") if "virtio-blk" in word]
    assert len(disks) == 3
    assert all("werror=report" in disk.split(",") for disk in disks)


def test_ports_are_forwarded_from_the_loopback_address_only() -> None:
    parts = [part for net in options(machine_argv(), "-netdev") for part in net.split(",")]
    assert [part for part in parts if "hostfwd" in part] == [
        "hostfwd=tcp:127.0.0.1:40022-:22",
        "hostfwd=tcp:127.0.0.1:45432-:5432",
    ]


def test_a_tap_only_when_asked_for() -> None:
    without, with_tap = machine_argv(), machine_argv(("hotset-1", "10.77.0.2/30"))
    assert not [word for word in without if "tap" in word or "eth1" in word]
    nets = [net for net in options(with_tap, "-netdev") if net.startswith("tap")]
    assert nets == ["tap,id=tap,ifname=hotset-1,script=no,downscript=no"]
    assert "hotset.eth1=10.77.0.2/30" in options(with_tap, "-append")[0].split()


def test_what_the_machine_is_made_of() -> None:
    argv = machine_argv()
    assert options(argv, "-smp") == ["3"]
    assert options(argv, "-m") == ["2048M"]
    assert options(argv, "-kernel") == ["/images/key/vmlinuz"]
    assert options(argv, "-serial") == ["file:/lab/log"]
    assert "init=/usr/sbin/hotset-init" in options(argv, "-append")[0].split()
    assert "-nodefaults" in argv


def test_acceleration() -> None:
    assert accel_argv("kvm") == ["-accel", "kvm", "-cpu", "host"]
    assert accel_argv("tcg")[1].startswith("tcg,")
    assert "host" not in accel_argv("tcg")


def test_a_boot_without_qemu_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    spec = VmSpec("tcg", 1, Bytes(GIB), ())
    cleanup = Cleanup(tmp_path, Local())
    with pytest.raises(PrerequisiteMissingError, match="apt-get install qemu-system-x86"):
        qemu.boot(Local(), Image(tmp_path), spec, tmp_path, cleanup)


ARGUMENTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(ARGUMENTS, min_size=1))
def test_over_ssh_every_word_stays_the_word_it_was(argv: list[str]) -> None:
    assert shlex.split(_line(argv)) == ["LC_ALL=C.UTF-8", "exec", *argv]


# The backend


@dataclass(frozen=True)
class Computer:
    """What a computer can do, as far as the choice of machine goes."""

    root: bool = True
    dm_cache: bool = False
    kvm: bool = False
    fuse: bool = True
    uml: bool = True

    def pretend(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(labs, "kernel_has_dm_cache", lambda: self.dm_cache)
        monkeypatch.setattr(os, "geteuid", lambda: 0 if self.root else 1000)
        monkeypatch.setattr(qemu, "has_kvm", lambda *_: self.kvm)
        lacking = lambda: None if self.uml else "no namespaces here"  # noqa: E731
        monkeypatch.setattr(uml, "lacking", lacking)
        monkeypatch.setitem(labs._LACKING, "uml", lacking)
        monkeypatch.setattr(chroot, "lacks_device", self.lacks_device)
        monkeypatch.setattr(loop, "may_mount", lambda _: True)

    def lacks_device(self, device: str, module: str) -> str | None:
        lacking = "fuse" in device and not self.fuse
        return f"{device} is missing: modprobe {module}" if lacking else None


@pytest.mark.parametrize(
    ("machine", "tier", "computer", "found"),
    [
        ("auto", "auto", Computer(dm_cache=True, kvm=True), "local"),
        ("auto", "auto", Computer(dm_cache=True, root=False), "uml"),
        ("auto", "auto", Computer(), "image"),
        ("auto", "auto", Computer(root=False), "uml"),
        ("auto", "auto", Computer(root=False, kvm=True), "uml"),
        ("auto", "auto", Computer(fuse=False), "uml"),
        ("auto", "dm-cache", Computer(), "uml"),
        ("auto", "dm-cache", Computer(uml=False, kvm=True), "uml"),
        ("auto", "dm-cache", Computer(dm_cache=True), "local"),
        ("auto", "userspace", Computer(dm_cache=True, kvm=True), "image"),
        ("vm", "auto", Computer(dm_cache=True), "vm"),
        ("vm", "dm-cache", Computer(), "vm"),
        ("vm", "bcache", Computer(), "vm"),
        ("auto", "bcache", Computer(), "uml"),
        ("uml", "auto", Computer(dm_cache=True, kvm=True), "uml"),
        ("uml", "bcache", Computer(), "uml"),
        ("auto", "bcache", Computer(dm_cache=True), "local"),
        ("local", "auto", Computer(dm_cache=True), "local"),
        ("image", "auto", Computer(dm_cache=True, kvm=True), "image"),
    ],
)
def test_the_machine_of_choice(
    monkeypatch: pytest.MonkeyPatch,
    machine: labs.MachineChoice,
    tier: labs.TierChoice,
    computer: Computer,
    found: str,
) -> None:
    computer.pretend(monkeypatch)
    assert labs.choose(machine, tier) == found


@pytest.mark.parametrize(
    ("machine", "tier", "computer", "why"),
    [
        ("local", "auto", Computer(dm_cache=True, root=False), "it needs root"),
        ("local", "auto", Computer(), "no dm-cache"),
        ("image", "auto", Computer(root=False), "it needs root"),
        ("image", "auto", Computer(fuse=False), "modprobe fuse"),
        ("auto", "userspace", Computer(root=False), "it needs root"),
        ("uml", "auto", Computer(uml=False), "no namespaces here"),
    ],
)
def test_a_machine_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
    machine: labs.MachineChoice,
    tier: labs.TierChoice,
    computer: Computer,
    why: str,
) -> None:
    computer.pretend(monkeypatch)
    with pytest.raises(PrerequisiteMissingError, match=f"{why}.*; machine = 'auto' takes the best"):
        labs.choose(machine, tier)


@pytest.mark.parametrize(
    ("machine", "tier"),
    [("vm", "userspace"), ("uml", "userspace"), ("image", "dm-cache"), ("image", "bcache")],
)
def test_a_machine_has_its_own_kind_of_tier(
    machine: labs.MachineChoice, tier: labs.TierChoice
) -> None:
    with pytest.raises(ValueError, match=rf"machine.kind = '{machine}' .* not '{tier}'"):
        labs.choose(machine, tier)


def test_no_tier_is_taken_for_dm_cache_but_where_none_is_named() -> None:
    """One that is no kernel's was, on a machine of the kernel's."""
    assert [labs.kernel_tier(tier) for tier in ("auto", *labs.KERNEL_TIERS)] == [
        "dm-cache",
        *labs.KERNEL_TIERS,
    ]
    with pytest.raises(ValueError, match="not 'userspace'"):
        labs.kernel_tier("userspace")


def test_each_lab_has_a_network_of_its_own(tmp_path: Path) -> None:
    names = {labs.namespace_name(tmp_path / str(number)) for number in range(50)}
    assert len(names) == 50
    assert max(map(len, names)) <= 15, "longer than the kernel takes for an interface"
    inside = labs.vm_portal(tmp_path, root=True)
    assert inside.listen == inside.reach != "127.0.0.1"
    assert inside.enter == ("nsenter", f"--net=/run/netns/{labs.namespace_name(tmp_path)}")
    outside = labs.vm_portal(tmp_path, root=False)
    assert (outside.listen, outside.reach, outside.enter) == ("127.0.0.1", qemu.USER_NET_HOST, ())


@pytest.mark.parametrize("value", ["", "relative/path"])
def test_folders_without_an_absolute_one_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, folder, found in (
        ("XDG_CACHE_HOME", ".cache", paths.cache_dir),
        ("XDG_DATA_HOME", ".local/share", paths.data_dir),
        ("XDG_STATE_HOME", ".local/state", paths.state_dir),
    ):
        monkeypatch.setenv(variable, value)
        assert found() == tmp_path / folder / "hotset"
        assert found().is_dir()
        monkeypatch.setenv(variable, str(tmp_path / "own"))
        assert found() == tmp_path / "own" / "hotset"


# The slow disk


def slow_disk(folder: Path, size: int, model: dict[str, str] | str = "nas-2014") -> ModelledStorage:
    target = Target(Local(), Portal("127.0.0.1", "10.0.2.2", 3260), folder)
    way = Iscsi(FakeMachine(), target)
    return ModelledStorage(Local(), way, model, Bytes(size), folder)


def test_the_target_listens_where_it_is_told(tmp_path: Path) -> None:
    portal = Portal("10.77.0.1", "10.77.0.1", 3260, ("nsenter", "--net=/run/netns/x"))
    argv = Target(Local(), portal, tmp_path).daemon_argv()
    assert argv[:3] == ["nsenter", "--net=/run/netns/x", "env"]
    assert argv[3] == f"TGT_IPC_SOCKET={tmp_path}/tgtd.sock"
    assert argv[argv.index("--iscsi") + 1] == "portal=10.77.0.1:3260"


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    if Local().which("tgtd") is None:
        pytest.skip("tgtd is not installed")
    cleanup = Cleanup(tmp_path, Local())
    with socket.create_server(("127.0.0.1", 0)) as other:
        portal = Portal("127.0.0.1", "127.0.0.1", other.getsockname()[1])
        with pytest.raises(PrerequisiteMissingError, match=f"listen on 127.0.0.1:{portal.port},"):
            Target(Local(), portal, tmp_path).start(cleanup)
    cleanup.undo()
    free = Portal("127.0.0.1", "127.0.0.1", portal.port)
    Target(Local(), free, tmp_path).start(cleanup)
    begun = time.monotonic()
    cleanup.undo()
    assert time.monotonic() - begun < 5, "tgtd ignores SIGTERM: it was waited for in vain"


def test_a_missing_target_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotset.core.machines.local._SBIN", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    target = Target(Local(), labs.local_portal(), tmp_path)
    with pytest.raises(PrerequisiteMissingError, match="apt-get install tgt"):
        target.start(Cleanup(tmp_path, Local()))


def test_an_image_is_restored_with_its_holes(tmp_path: Path) -> None:
    saved = tmp_path / "saved.img"
    with saved.open("wb") as file:
        file.truncate(8 * 2**20)
        file.seek(2**20)
        file.write(b"data" * 1024)
    slow_disk(tmp_path, 16 * 2**20).restore(saved, Cleanup(tmp_path, Local()))
    restored = tmp_path / "slow.img"
    assert restored.read_bytes() == saved.read_bytes()
    assert restored.stat().st_blocks * 512 < 2**20


def test_an_image_larger_than_the_disk_is_refused(tmp_path: Path) -> None:
    saved = tmp_path / "saved.img"
    with saved.open("wb") as file:
        file.truncate(2 * 2**20)
    with pytest.raises(ValueError, match=r"2 MiB\) is larger than the origin .*1 MiB"):
        slow_disk(tmp_path, 2**20).restore(saved, Cleanup(tmp_path, Local()))
    assert not (tmp_path / "slow.img").exists()


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    option, file = slow_disk(tmp_path, GIB, {"kind": "mine"}).model_words("--model")
    assert option == "--model"
    assert json.loads(Path(file).read_text()) == {"kind": "mine"}
    assert slow_disk(tmp_path, GIB).model_words("--model")[1] == "nas-2014"


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int) -> None:
    """A `flashdev` that only complains and ends."""
    program = folder / "flashdev"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOTSET_FLASHDEV", str(program))


def test_a_disk_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "no /dev/fuse here", 1)
    with pytest.raises(PrerequisiteMissingError, match="did not start: no /dev/fuse here"):
        slow_disk(tmp_path, 2**20).attach(Cleanup(tmp_path, Local()))


def test_a_disk_that_is_refused_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "flashdev: model field `disks` is 0", 2)
    with pytest.raises(programs.RefusedError, match="the slow disk is refused: model field"):
        slow_disk(tmp_path, 2**20).attach(Cleanup(tmp_path, Local()))
    with pytest.raises(programs.RefusedError, match=r"^model field"):
        flashdev.read_promise(Local(), {"name": "x", "device": {"hdd": {"rpm": 0}}}, [])


def test_progress_of_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hotset-engine").touch()
    monkeypatch.setenv("HOTSET_FLASHDEV", str(tmp_path / "flashdev"))
    machine = FakeMachine({"hotset-engine copy": 'copied 5\nnote\ncopied 9\n{"seconds": 1.5}\n'})
    seen: list[Bytes] = []
    assert programs.copy(machine, ["--from", "/dev/x"], seen.append) == 1.5
    assert seen == [5, 9]
    assert machine.commands[-1] == "hotset-engine copy --from /dev/x"


def test_the_engine_is_put_onto_a_machine_once_for_each_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, built = tmp_path / "hotset-engine", programs.find_engine().read_bytes()
    program.write_bytes(built)
    monkeypatch.setenv("HOTSET_FLASHDEV", str(program.with_name("flashdev")))
    machine = FakeMachine({"test -x": 1})
    path = programs.engine(machine)
    assert machine.files.keys() == {path}
    assert machine.files[path][1] == 0o755
    machine = FakeMachine()
    assert programs.engine(machine) == path
    assert machine.files == {}
    program.write_bytes(built + b"a later one")
    os.utime(program, ns=(1, 1))
    assert programs.engine(machine) != path


def test_a_device_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_LOGIN_LIMIT_S", 0)
    machine = FakeMachine({"test -b": 1})
    with pytest.raises(PrerequisiteMissingError, match="/dev/x did not appear on vm"):
        storage.wait_for_device(machine, PurePosixPath("/dev/x"))


def test_the_machine_of_a_lab_is_chosen_again_once_there_is_an_image_to_probe_kvm_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Image] = []

    def ensure(*_: object) -> Image:
        built.append(Image(tmp_path))
        return built[0]

    Computer().pretend(monkeypatch)
    # As /dev/kvm promises it, until a kernel is really booted with it.
    monkeypatch.setattr(qemu, "has_kvm", lambda *_: not built)
    monkeypatch.setattr(image, "ensure", ensure)
    monkeypatch.setattr(labs, "_uml_kernel", lambda *_: uml.Kernel(tmp_path))
    monkeypatch.setattr(labs, "_uml_lab", lambda *_: "uml")
    monkeypatch.setattr(labs, "_vm_lab", lambda *_: "vm")
    spec = labs.LabSpec("auto", 1, Bytes(GIB), Bytes(GIB), guest=True)
    lab = labs.raise_lab(spec, tmp_path, Cleanup(tmp_path, Local()), print)
    assert str(lab) == "uml"

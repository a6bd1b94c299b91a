"""What would mount an origin past its tier is found as mount and systemd find it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotset.core.machines.local import Local
from hotset.disk import create as creation
from hotset.disk.boot import fstab, mounts, startup
from hotset.disk.flash_devices import AttachedDisk, FlashError
from tests.disk.test_create import made
from tests.support.flash_devices import FLASH, Keeping, disk
from tests.support.new_disk import ORIGIN, WANTED, server

PROBED = "UUID=1234-abcd\nLABEL=my\\ data\nPART_ENTRY_UUID=77-01\nPART_ENTRY_NAME=db\nTYPE=ext4\n"
UNIT = "hotset-tier-oltp.service"


def with_fstab(*lines: str, **more: Any) -> Keeping:  # noqa: ANN401
    there = server(**{"blkid --probe --output export": PROBED, **more})
    there.files["/etc/fstab"] = ("".join(f"{line}\n" for line in lines), 0o644)
    return there


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("UUID=1234-ABCD /srv/db ext4", f"/srv/db ext4 x-systemd.requires={UNIT}"),
        ("UUID=1234-abcd /srv/db", f"/srv/db auto x-systemd.requires={UNIT}"),
        (
            'LABEL="my\\040data" /srv/db ext4 ro 0 2',
            f"/srv/db ext4 ro,x-systemd.requires={UNIT} 0 2",
        ),
        ("LABEL=my\\040data /a\\040b ext4", f"/a\\040b ext4 x-systemd.requires={UNIT}"),
        ("PARTUUID=77-01 /srv/db ext4 ro", f"/srv/db ext4 ro,x-systemd.requires={UNIT}"),
        ("PARTLABEL=db /srv/db ext4 ro", f"/srv/db ext4 ro,x-systemd.requires={UNIT}"),
        ("/dev/disk/by-label/my\\x20data /db ext4", f"/db ext4 x-systemd.requires={UNIT}"),
        ("/dev/disk/by-partlabel/db /db ext4", f"/db ext4 x-systemd.requires={UNIT}"),
        (f"ID={ORIGIN.name} /db ext4", f"/db ext4 x-systemd.requires={UNIT}"),
        ("/dev/sda /db ext4", f"/db ext4 x-systemd.requires={UNIT}"),
        (f"  {ORIGIN}\t/db\text4 rw", f"\t/db\text4 rw,x-systemd.requires={UNIT}"),
        ("UUID=1234-abcd none swap sw 0 0", f"none swap sw,x-systemd.requires={UNIT} 0 0"),
    ],
)
def test_a_line_that_mounts_the_origin_is_found_by_whatever_name(line: str, becomes: str) -> None:
    """With two fields, as systemd takes it, with three, as mount does, and with quotes."""
    there = with_fstab("# none", line, "tmpfs /tmp tmpfs", "UUID=other /home ext4", "srv:/x /n nfs")
    with pytest.raises(FlashError, match="line 2, `"):
        creation.create(there, WANTED, False, print)
    assert made(there) == []
    creation.create(there, WANTED, True, lambda _: None)
    now = there.files["/etc/fstab"][0].split("\n")
    separator = "" if becomes.startswith("\t") else " "
    assert now[1:3] == [f"# hotset oltp: {line}", f"/dev/mapper/hotset-oltp{separator}{becomes}"]
    fstab.restore(AttachedDisk(there, FLASH, disk("oltp")))
    assert there.files["/etc/fstab"][0].split("\n")[1] == line


def test_an_fstab_of_thousands_of_lines_costs_a_few_commands_more() -> None:
    """Each command is a round trip to a server."""
    lines = [f"UUID=other-{number} /srv/{number} ext4" for number in range(5000)]
    there = with_fstab(*lines[:2500], "UUID=1234-abcd /srv/db ext4", *lines[2500:])
    (found,) = mounts.find_mounts(there, ORIGIN).entries
    assert found.number == 2501
    assert len(there.commands) < 50
    text = there.files["/etc/fstab"][0]
    attached = AttachedDisk(there, FLASH, disk())
    fstab.rewrite(attached, [found], UNIT)
    changed = there.files["/etc/fstab"][0].split("\n")
    assert [*changed[:2500], *changed[2502:]] == [*lines[:2500], *lines[2500:], ""]
    fstab.restore(attached)
    assert there.files["/etc/fstab"][0] == text


def test_labels_differ_in_case_and_uuids_do_not() -> None:
    there = with_fstab("LABEL=My\\040Data /a ext4", "PARTLABEL=DB /b ext4", "UUID= /c ext4")
    assert mounts.find_mounts(there, ORIGIN) == mounts.Mounting()


ELSEWHERE = {
    "a unit": {
        "grep -RsE": f"/etc/systemd/system/srv-db.mount:What = {ORIGIN}\n"
        "/usr/lib/systemd/system/tmp.mount:What=tmpfs\n"
    },
    "a drop-in": {"grep -RsE": "/etc/systemd/system/srv-db.mount.d/x.conf:What=UUID=1234-abcd\n"},
    "crypttab": {"cat /etc/crypttab": "# x\nsecret UUID=1234-abcd none luks\n"},
    "autofs": {
        "grep -RsE '^[[:space:]]*[^#": "/etc/auto.master:/misc /etc/auto.misc --timeout=60\n",
        "grep -sHE": f"/etc/auto.misc:db -fstype=ext4 :{ORIGIN}\n",
    },
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_what_is_not_in_fstab_is_refused_also_with_yes(where: str) -> None:
    there = with_fstab(**ELSEWHERE[where])
    with pytest.raises(FlashError, match=r"used past the tier: /etc/.*hotset does not chan"):
        creation.create(there, WANTED, True, print)
    assert made(there) == []


@pytest.mark.parametrize(
    "word",
    [
        "systemd.mount-extra=UUID=1234-abcd:/srv/db:ext4",
        "rd.systemd.mount-extra=/dev/sda:/srv/db",
        "systemd.swap-extra=UUID=1234-abcd",
        "mount.usr=LABEL=x resume=UUID=1234-ABCD",
    ],
)
def test_the_kernels_command_line_mounts_too(word: str) -> None:
    there = with_fstab()
    there.files["/proc/cmdline"] = (f"root=/dev/vda1 ro {word} quiet\n", 0o444)
    with pytest.raises(FlashError, match="used past the tier: the kernel's command line uses"):
        creation.create(there, WANTED, True, print)
    assert made(there) == []


def test_a_line_for_the_initrd_comes_before_every_unit() -> None:
    there = with_fstab("UUID=1234-abcd /srv/db ext4 rw,x-initrd.mount 0 2")
    with pytest.raises(FlashError, match=r"line 1, .* mounts it before any unit runs"):
        creation.create(there, WANTED, True, print)
    assert made(there) == []


def test_what_lies_on_the_origin_is_mounted_by_no_line_either() -> None:
    """A partition of it cannot be exchanged for its tier."""
    there = with_fstab("UUID=77 /srv/db ext4 rw 0 2")
    asked = there.answers["lsblk"]
    part = {"name": "sda1", "maj:min": "8:1", "uuid": "77"}
    tier = {"name": "hotset-oltp", "maj:min": "252:3", "uuid": "1234-abcd"}

    def lsblk() -> str:
        if "UUID,LABEL" in there.calls[-1].line:
            top = {"name": "sda", "maj:min": "8:0", "children": [tier, part]}
            return json.dumps({"blockdevices": [top]})
        assert callable(asked)
        return asked()

    there.answers["lsblk"] = lsblk
    with pytest.raises(FlashError, match=r"line 1, .* mounts what lies on it"):
        creation.create(there, WANTED, True, print)
    there.files["/etc/fstab"] = ("/dev/mapper/hotset-oltp /srv/db ext4 rw 0 2\n", 0o644)
    assert mounts.find_mounts(there, ORIGIN) == mounts.Mounting(), "that is the tier"


def test_a_map_that_nobody_but_autofs_can_read_is_named() -> None:
    there = with_fstab(
        **{
            "grep -RsE '^[[:space:]]*[^#": "/etc/auto.master:/net -hosts\n"
            "/etc/auto.master:/x ldap:o=1\n"
        }
    )
    said = list[str]()
    startup.warn(AttachedDisk(there, FLASH, disk("oltp")), said.append)
    assert len(said) == 1
    assert "what autofs mounts by `/etc/auto.master: /x ldap:o=1`" in said[0]


def test_an_fstab_that_is_read_only_is_refused_before_anything_is_changed() -> None:
    there = with_fstab("UUID=1234-abcd /srv/db ext4", **{"test -w": 1})
    with pytest.raises(FlashError, match="cannot be changed"):
        creation.create(there, WANTED, True, print)
    assert made(there) == []


def test_a_server_without_systemd_is_told_that_nothing_makes_the_tier() -> None:
    there, said = with_fstab("UUID=1234-abcd /srv/db ext4"), list[str]()
    creation.create(there, WANTED, True, said.append)
    assert "nothing makes the tier at its start" in said[-1]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "etc" / "fstab"
    path.parent.mkdir()
    monkeypatch.setattr(fstab, "PATH", PurePosixPath(path))
    return path


def test_a_file_is_an_origin_by_all_its_names(table: Path, tmp_path: Path) -> None:
    image, other = tmp_path / "origin image", tmp_path / "other"
    image.write_bytes(b"x")
    other.write_bytes(b"x")
    (tmp_path / "link").symlink_to(image)
    escaped = str(image).replace(" ", "\\040")
    table.write_text(
        f"{escaped} /a ext4 loop=/dev/loop3,noatime 0 2\n{other} /b ext4 loop\n"
        f"{tmp_path}/link /c ext4\n{escaped} /d ext4 offset=1048576 0 0\n"
    )
    found = mounts.find_mounts(Local(), PurePosixPath(image))
    assert [str(one.folder) for one in found.entries] == ["/a", "/c"]
    assert "line 4" in found.others[0]
    new = found.entries[0].through(PurePosixPath("/dev/hotset/x"), "x.service", remote=False)
    assert new == "/dev/hotset/x /a ext4 noatime,x-systemd.requires=x.service 0 2"


def test_a_link_stays_a_link_and_all_else_as_it_was(table: Path, tmp_path: Path) -> None:
    """5,000 lines, no end of line at the end, and marks that only look like ends of lines."""
    image, real = tmp_path / "origin", tmp_path / "kept"
    image.write_bytes(b"x")
    lines = [f"/dev/nothing{at} /srv/{at} ext4 noauto 0 2 # \u2028 \x0c" for at in range(5000)]
    lines[4000] = f"{image} /srv/db ext4"
    real.write_text("\n".join(lines))
    table.symlink_to(real)
    here = Local()
    one = AttachedDisk(here, FLASH, replace(disk("oltp"), origin=PurePosixPath(image)))
    found = mounts.find_mounts(here, PurePosixPath(image))
    assert [entry.number for entry in found.entries] == [4001]
    assert len(fstab.rewrite(one, found.entries, UNIT)) == 1
    assert table.is_symlink()
    assert fstab.restore(one) == [lines[4000]]
    assert real.read_text() == "\n".join(lines)
    assert table.is_symlink()


WORDS = st.sampled_from(
    [
        "UUID=1",
        'LABEL="a"',
        "/dev/x\\040y",
        "/a.img",
        "#",
        "#x",
        "none",
        "ext4",
        "rw,loop",
        "0",
        "2",
    ]
)
LINES = st.lists(st.lists(WORDS, max_size=7).map(" \t".join), max_size=6).map("\n".join)


@settings(max_examples=40, deadline=None)
@given(LINES)
def test_every_line_that_mount_or_systemd_takes_is_seen(text: str) -> None:
    found = {(one.spec, str(one.folder)) for one in fstab.entries(text)}
    asked = ["findmnt", "--tab-file", "/dev/stdin", "--json", "--output", "SOURCE,TARGET"]
    said = subprocess.run(asked, input=text, capture_output=True, text=True, check=False).stdout
    listed = json.loads(said)["filesystems"] if said.strip() else []
    assert {(one["source"], str(PurePosixPath(one["target"]))) for one in listed} <= found


GENERATOR = Path("/usr/lib/systemd/system-generators/systemd-fstab-generator")


@pytest.mark.skipif(not GENERATOR.exists(), reason="no systemd-fstab-generator here")
@pytest.mark.parametrize("line", ["/a.img /srv/db", "/a.img /srv/db ext4"])
def test_what_systemd_makes_of_a_line_is_seen(tmp_path: Path, line: str) -> None:
    (tmp_path / "fstab").write_text(f"{line}\n")
    environment = {"SYSTEMD_FSTAB": str(tmp_path / "fstab")}
    folders = [str(tmp_path)] * 3
    subprocess.run([GENERATOR, *folders], env=environment, check=True, capture_output=True)
    (unit,) = tmp_path.glob("*.mount")
    assert "What=/a.img" in unit.read_text()
    assert [one.spec for one in fstab.entries(line)] == ["/a.img"]

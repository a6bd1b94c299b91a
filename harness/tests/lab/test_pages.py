"""What the pages say, happens: their blocks of commands are run as they stand, on a computer with
two accelerated disks and a database that wants a password. Only names are replaced, by one table.

A block that is not run has its reason in a comment above it, which readers do not see; likewise a
line of one, by the words that it begins with.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotset.disk import flash_devices, lifecycle
from tests.enclosed import Enclosed, enclosed

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    # That of PowerShell is followed by its own tests.
    *sorted(one for one in (ROOT / "docs").glob("*.md") if one.name != "powershell.md"),
]
ACTS = ("README.md", "docs/databases.md", "docs/hit-ratios.md", "docs/warm-up.md")
"""The three acts, warm-up and hit ratios: of every change; the others before a release."""
_MARK = r"<!-- not run(?:, ([^:>]+))?: ([^>]+?) -->\n"
_BLOCK = re.compile(rf"^((?:{_MARK})*)```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PASSWORD = "never-to-be-seen"  # noqa: S105 - of a server that lives for a minute
NAMES = (
    (r"--dsn …|--dsn postgresql://\S+", "--dsn {dsn}"),
    (r" --machine ssh://(root@)?db1", ""),
    (r"/dev/disk/by-id/nvme-…", "{folder}/flash"),
    (r"/srv/pg/base/archive", "{mount}/archive"),
    (r"/srv/pg\b", "{mount}"),
    (r"/var/lib/node_exporter", "{folder}"),
    (r"\bshop\.hot\b", "{folder}/shop.hot"),
    (r"/srv/db\b", "{mount}"),
    (r"--policy sieve", "--policy lru"),
    (r"database:reports", "database:postgres"),
)
ENDLESS = ("hotset tier watch", "hotset top", "hotset console")
"""Commands that a person ends, by Ctrl-C or `q`."""


@dataclass(frozen=True)
class Block:
    """One of a page; ``reasons``: why it is not run, and lines of it by their first words."""

    page: str
    line: int
    text: str
    reasons: dict[str, str]

    @property
    def is_run(self) -> bool:
        return "" not in self.reasons

    @property
    def lines(self) -> list[str]:
        """Its commands, without what is said of them."""
        joined = self.text.replace("\\\n", " ").splitlines()
        found = [cut for one in joined if (cut := re.sub(r"(^|\s+)#\s.*", "", one).strip())]
        return [one for one in found if not any(one.startswith(skip) for skip in self.reasons)]


def blocks() -> list[Block]:
    """Every block that has a command of ours, or of a shell."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for one in _BLOCK.finditer(text):
            line = text.count("\n", 0, one.end(1)) + 1
            reasons = dict(re.findall(_MARK, one[1]))
            if one[4] in ("", "sh", "bash") and _has_commands(one[5]):
                found.append(Block(str(page.relative_to(ROOT)), line, one[5], reasons))
    return found


def _has_commands(text: str) -> bool:
    first = r"hotset|\./hotset|sudo|make|apt-get|uv|export|install|mount|for|api|systemctl|[A-Z_]+="
    return bool(re.search(rf"^(?:{first})\b", text, re.MULTILINE))


RUN = [one for one in blocks() if one.is_run]


def test_every_block_is_run_or_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    found = blocks()
    marked = [one for one in found if not one.is_run]
    unused = [
        f"{one.page}:{one.line}: {begin}"
        for one in found
        for begin in one.reasons
        if begin and not any(line.startswith(begin) for line in one.text.splitlines())
    ]
    assert unused == []
    with capsys.disabled():
        sys.stderr.write(f"\n{len(found)} blocks, {len(RUN)} run, {len(marked)} with a reason\n")
    assert len(found) > 60
    assert {one.page for one in RUN} >= set(ACTS)
    assert [one for one in found for text in one.reasons.values() if len(text) < 15] == []


@dataclass(frozen=True)
class Desk:
    """A computer of its own, with a shell in which the pages are followed."""

    machine: Enclosed
    folder: Path
    port: int

    @property
    def dsn(self) -> str:
        return f"postgresql://me@127.0.0.1:{self.port}/shop"

    def sh(self, script: str, limit_s: float = 240, check: bool = True) -> tuple[int, str]:
        home, path = self.folder / "home", Path(sys.executable).parent
        prepared = (
            f"cd {self.folder}; export HOME={home} HOTSET_PASSWORD={PASSWORD} LC_ALL=C.UTF-8"
            f" PATH={path}:$PATH\n{script}"
        )
        argv = ["env", "-u", "XDG_STATE_HOME", "-u", "XDG_DATA_HOME", "bash", "-c", prepared]
        done = self.machine.run(argv, check=False, timeout_s=limit_s)
        text = done.stdout + done.stderr
        assert not check or done.rc == 0, f"{script}\n{text}"
        return done.rc, text

    def follow(self, command: str) -> None:
        """Type it as somebody would who sees only what is on the screen."""
        typed = command
        for name, ours in NAMES:
            here = {"dsn": self.dsn, "folder": self.folder, "mount": self.folder / "mounted"}
            typed = re.sub(name, ours.format(**here), typed)
        if typed.startswith(ENDLESS):
            rc, text = self.sh(f"timeout --signal=INT 8 {typed} < /dev/null", check=False)
            assert rc in (0, 2, 124), f"{typed}\n{text}"
            return
        rc, text = self.sh(typed, check=False)
        if rc == 2 and (advised := re.search(r"; to name one: `(hotset [^`]+)`", text)):
            # What a message says to type works.
            rc, text = self.sh(advised[1], check=False)
        # Of `tier health`: something is to be done, or is not known.
        fine = (0, 3, 5) if "tier health" in typed else (0,)
        assert rc in fine, f"{command}\n{typed}\nended with {rc}:\n{text}"
        assert "Traceback" not in text


_DATABASE = """set -e
pg=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
chown postgres {mount}; chmod 755 {folder}
printf %s {password} > {folder}/pw; chmod 644 {folder}/pw
as() {{ runuser -u postgres -- "$@"; }}
as $pg/initdb -D {mount}/data -U me -N -A scram-sha-256 --pwfile {folder}/pw > /dev/null
as $pg/pg_ctl -D {mount}/data -w -l {mount}/log -o "-p {port} -c listen_addresses=127.0.0.1 \
-c unix_socket_directories=" start > /dev/null
export PGPASSWORD={password}
psql="psql -q -h 127.0.0.1 -p {port} -U me -v ON_ERROR_STOP=1"
$psql -d postgres -c 'CREATE DATABASE shop'
$psql -d shop -c "CREATE TABLE orders AS SELECT g AS id, repeat('x', 300) AS t FROM
generate_series(1, 20000) g; ALTER TABLE orders ADD PRIMARY KEY (id);
CREATE TABLE customer AS SELECT * FROM orders; CREATE TABLE stock AS SELECT * FROM orders;
CHECKPOINT"
mkdir -p {mount}/archive; head -c 2000000 /dev/urandom > {mount}/archive/old; sync -f {mount}
"""
_STOP = """
pg=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
runuser -u postgres -- $pg/pg_ctl -D {mount}/data -m immediate stop > /dev/null
umount {mount}
"""


@contextmanager
def _desk(folder: Path) -> Iterator[Desk]:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mount = folder / "mounted"
    names = {"mount": mount, "folder": folder, "port": port, "password": PASSWORD}
    for name, mib in (("flash", 512), ("slow", 768), ("other", 128)):
        with (folder / name).open("wb") as file:
            file.truncate(mib << 20)
    for name in (mount, folder / "home"):
        name.mkdir()
    with enclosed() as machine:
        desk = Desk(machine, folder, port)
        try:
            for disk, origin in (("shop", "slow"), ("dwh", "other")):
                desk.sh(
                    f"hotset tier create {disk} --kind userspace --flash {folder}/flash --origin"
                    f" {folder}/{origin} --database oltp --cache 64MiB --yes"
                )
            desk.sh(f"mke2fs -q -F -t ext4 /dev/hotset/shop && mount /dev/hotset/shop {mount}")
            desk.sh(_DATABASE.format(**names))
            yield desk
        finally:
            desk.sh(_STOP.format(**names), check=False)
            for flash in flash_devices.inventory(machine).flash_devices:
                lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, print)


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("needs root and /dev/fuse")
    # Where the database server's account comes, too.
    folder = Path(tempfile.mkdtemp(prefix="hotset-desk-"))
    try:
        with _desk(folder) as there:
            yield there
    finally:
        shutil.rmtree(folder)


def _parameters() -> Iterator[object]:
    for block in RUN:
        marks = [pytest.mark.lab, *([] if block.page in ACTS else [pytest.mark.night])]
        yield pytest.param(block, id=f"{block.page}:{block.line}", marks=marks)


@pytest.mark.parametrize("block", _parameters())
def test_a_block_does_what_its_page_says(desk: Desk, block: Block) -> None:
    for line in block.lines:
        for command in line.split("; "):
            desk.follow(command)

"""What the pages say, happens: their blocks of commands are run as they stand, on a computer with
two accelerated disks and a database that wants a password, from the checkout and from the installed
package. Only what a small computer has not got is replaced, by two tables: names, and sizes.

A block that is not run has its reason in a comment above it, which readers do not see; likewise a
line of one, by the words that it begins with. ``<!-- alone -->`` is above a block that leaves a
computer behind that no other block could be run on, ``<!-- before -->`` above one for a computer
that has no accelerated disk yet.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hotset import __version__
from hotset.core.extras import PACKAGED
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
SHAPES = Path(__file__).with_name("pages.json")
"""Of each command, how it ends and what heads what it shows."""
_MARK = r"<!-- not run(?:, ([^:>]+))?: ([^>]+?) -->\n"
_ABOVE = rf"(?:{_MARK}|<!-- (?:alone|before) -->\n)"
_BLOCK = re.compile(rf"^({_ABOVE}*)```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PASSWORD = "never-to-be-seen"  # noqa: S105 - of a server that lives for a minute
DSN = "postgresql://me@dbserver/shop"
MEASURED, LATER = "20261123-164110-demo", "20261126-061610-demo"
"""Published runs with a baseline."""
NAMES = (
    (r"^sudo |^\./(?=hotset)", ""),
    (r"--dsn …", f"--dsn {DSN}"),
    (r" (--label \w+) …", rf" \1 --dsn {DSN}"),
    (r"(--flash) …|/dev/disk/by-id/nvme-…", "{folder}/flash"),
    (r"--origin …|/dev/disk/by-id/ata-…", "{folder}/slow"),
    (r"/dev/disk/by-id/scsi-slow|/dev/sdb", "/dev/hotset/shop"),
    (r"(whatif record .*--output) shop.trace", r"\1 recorded.trace --force"),
    # Where the kernel has none, the cache in user space.
    (r"(tier create shop) (?=--flash)", r"\1 --kind userspace "),
    (r"(whatif trace convert .*--output) shop.trace", r"\1 converted.trace"),
    (r"(?<=--run )last|(?<=predict )last|(?<=check )RUN|(?<=trend )RUN", MEASURED),
    (r"(?<=--by )OTHER", LATER),
    (r"(?<=compare )RUN RUN …", f"{MEASURED} {LATER} --force"),
    (r"--cache 10GiB", "--cache 4MiB"),
    (r"--cache [12]0+GiB", "--cache 8MiB"),
    # Of every change, so without the time that ssh takes, which other pages have.
    (r" --machine ssh://db1$", ""),
    (r"/srv/pg\b", "/srv/db"),
    (r"/var/lib/node_exporter|/mnt/data|(?<= )\.\.\.", "{folder}"),
    (r"--policy sieve(?=\s+#| *$)", "--policy lru"),
    (r"database:reports", "database:postgres"),
    # No systemd runs here.
    (r" --unit\b", ""),
)
SIZES = (
    (r"tpcc build", "--warehouses 1"),
    (r"tpcc run", "--users 2 --warehouses 1 --rampup 1 --duration 3"),
    (r"sql run", "--users 2 --rampup 1 --duration 3"),
    (r"tpch build", "--scale 0.01"),
    (r"tpch run --streams", "--streams 2"),
    (r"disk bench", "--size 16MiB --seconds 0.5 --repeats 1"),
    (r"disk reread", "--size 1MB"),
    (r"disk arrays", "--size 64MiB --seconds 0.5 --repeats 1"),
    (r"tier create", "--cache 64MiB --volume 32MiB"),
    (r"tier resize \w+ --cache", "--cache 96MiB"),
    (r"whatif record", "--minutes 0.05"),
    (r"whatif trace tpcc", "--warehouses 2 --buffer 16MiB --tpm 6000 --seconds 20"),
    (r"whatif trace tpch", "--scale 0.01 --buffer 1MiB"),
    (r"(?<=tpcc:)\S+", "warehouses=2,buffer=16MiB,tpm=6000,seconds=20"),
    (r"(?<=tpch:)\S+", "scale=0.01,buffer=1MiB"),
    (r"experiment run shop", "--set repeats=1 --set sql.duration_s=5 --set sql.rampup_s=1"),
    (r"experiment run hybrid", "--set reread.size=1MB"),
    (r"experiment run flash", "--set arrays.size=64MiB --set arrays.seconds=0.5"),
    (r"(?<=warehouses: )10", "1"),
    (r'(?<=users: )"8"', '"2", duration: 3, rampup: 1'),
)
"""What is smaller or shorter here. An option that is given twice counts as it is given last."""
ENDLESS = re.compile(r"hotset (?:tier watch|top|console(?! password| token))")
"""Commands that a person ends, by Ctrl-C or `q`."""


@dataclass(frozen=True)
class Block:
    """One of a page; ``reasons``: why it is not run, and lines of it by their first words;
    ``place``: the computer that it is followed on."""

    page: str
    line: int
    text: str
    reasons: dict[str, str]
    place: str

    @property
    def is_run(self) -> bool:
        return "" not in self.reasons

    @property
    def commands(self) -> list[str]:
        """Its commands, without what is said of them."""
        joined = re.sub(r"\\\n\s*", "", self.text).splitlines()
        found = [cut for one in joined if (cut := re.sub(r"(^|\s+)#\s.*", "", one).strip())]
        if "() {" in self.text:
            return [self.text]
        kept = [one for one in found if not any(one.startswith(skip) for skip in self.reasons)]
        return [one for line in kept for one in line.split("; ") if not one.startswith("…")]


def blocks() -> list[Block]:
    """Every block that has a command of ours, or of a shell."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for one in _BLOCK.finditer(text):
            line = text.count("\n", 0, one.end(1)) + 1
            reasons = dict(re.findall(_MARK, one[1]))
            place = next(
                (name for name in ("alone", "before") if f"<!-- {name} -->" in one[1]), "shared"
            )
            if one[4] in ("", "sh", "bash") and _has_commands(one[5]):
                name = str(page.relative_to(ROOT))
                found.append(Block(name, line, one[5], reasons, place))
    return found


def _has_commands(text: str) -> bool:
    first = (
        r"hotset|\./hotset|sudo|make|apt-get|uv|export|install|u?mount|for|api|systemctl|runuser"
        r"|[A-Z_]+="
    )
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
    assert len(RUN) > len(marked)
    assert {one.page for one in RUN} >= set(ACTS)
    assert [one for one in found for text in one.reasons.values() if len(text) < 15] == []


def test_no_command_is_written_where_no_test_looks_for_it() -> None:
    """One page had its commands in lines that are indented."""
    hidden = [
        f"{page.name}: {line.strip()}"
        for page in PAGES
        for line in re.findall(r"^    +hotset .*", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert hidden == []


@dataclass
class Desk:
    """A computer of its own, with a shell in which the pages are followed.

    :ivar program: the folder of `hotset`.
    :ivar before: lines of the block that later ones need: variables.
    """

    machine: Enclosed
    folder: Path
    program: Path
    before: list[str] = field(default_factory=list)

    def sh(self, script: str, limit_s: float = 500, check: bool = True) -> tuple[int, str, str]:
        console = f"HOTSET_CONSOLE_PASSWORD_FILE={self.folder}/pw"
        cached = os.environ.get("XDG_CACHE_HOME") or f"{Path.home()}/.cache"
        prepared = (
            f"cd {self.folder}; export HOME={self.folder}/home HOTSET_PASSWORD={PASSWORD}"
            f" LC_ALL=C.UTF-8 HOTSET_DSN={DSN} {console} XDG_CACHE_HOME={cached}"
            f" PATH={self.program}:$PATH\n{script}"
        )
        argv = ["env", "-u", "XDG_STATE_HOME", "-u", "XDG_DATA_HOME", "bash", "-c", prepared]
        done = self.machine.run(argv, check=False, timeout_s=limit_s)
        assert not check or done.rc == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.rc, done.stdout, done.stderr

    def typed(self, command: str) -> str:
        """A command of a page as it is typed here."""
        for pattern, ours in NAMES:
            command = re.sub(pattern, ours.replace("{folder}", str(self.folder)), command)
        for pattern, ours in SIZES:
            if pattern.startswith("(?<="):
                command = re.sub(pattern, ours, command)
            elif re.search(rf"hotset {pattern}", command):
                begin, sign, rest = command.partition(" > ")
                command = f"{begin} {ours}{sign}{rest}"
        return command

    def follow(self, command: str) -> tuple[int, str]:
        """Type it as somebody would who sees only what is on the screen; how it ended, and what it
        showed."""
        typed = self.typed(command)
        if typed.startswith("export "):
            self.before.append(typed)
            return 0, ""
        if typed.startswith("umount"):
            self.sh(_STOP)
        if re.match(r"api=|hotset (tpcc run|runs|report last)", typed):
            self.need("tpcc", "hotset tpcc build --warehouses 1")
        if re.match(r"hotset (runs|report last)", typed):
            short = "--users 2 --warehouses 1 --rampup 1 --duration 3"
            for label in ("before", "after"):
                self.need(label, f"hotset tpcc run {short} --label {label}")
        if typed.startswith("api="):
            self.before.append(_CONSOLE)
        rc, out, err = self.type(typed)
        if rc == 2 and (advised := re.search(r"; to name one: `(hotset [^`]+)`", err)):
            # What a message says to type works.
            rc, out, err = self.type(advised[1])
        # Of `tier health`: something is to be done, or is not known; of a threshold: it was missed.
        fine = (0, 3, 5) if "tier health" in typed else (0, 5) if "--threshold" in typed else (0,)
        assert rc in fine, f"{command}\n{typed}\nended with {rc}:\n{out}{err}"
        assert "Traceback" not in out + err
        return 0, "" if "tier health" in typed else out

    def type(self, command: str) -> tuple[int, str, str]:
        if not ENDLESS.match(command):
            return self.sh("\n".join([*self.before, f"{command} < /dev/null"]), check=False)
        # A shell that stays in front, as sh may, has what sets up a terminal stopped by it.
        ended = f"timeout --foreground --signal=INT 12 {command}"
        if command.startswith("hotset top"):  # on a terminal alone
            ended = f"TERM=xterm script --quiet --return --command '{ended}' typescript > screen"
        ended = f"{ended} < /dev/null"
        rc, out, err = self.sh(ended, check=False)
        return 0 if rc in (124, 130) else rc, out, err

    def need(self, what: str, command: str) -> None:
        """Have it done once."""
        done = self.folder / f"{what}.done"
        if not done.exists():
            self.sh(command)
            done.touch()


_WORLD = """set -e
ip link set lo up
printf '127.0.0.1 localhost db1 dbserver db.example\\n' > {folder}/hosts
mount --bind {folder}/hosts /etc/hosts
chmod 755 {folder}
printf %s {password} > {folder}/pw; chmod 644 {folder}/pw
mkdir -p /etc/hotset/secrets $HOME/.ssh; chmod 700 $HOME/.ssh
ssh-keygen -q -t ed25519 -N '' -f $HOME/.ssh/id_ed25519
ssh-keygen -q -t ed25519 -N '' -f {folder}/host
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=db1 \
    2> /dev/null
printf 'db1 %s\\n' "$(cat {folder}/host.pub)" > $HOME/.ssh/known_hosts
mkdir -p /run/sshd
$(command -v sshd) -f /dev/null -h {folder}/host -o ListenAddress=127.0.0.1 -o PermitRootLogin=yes \
    -o AuthorizedKeysFile=$HOME/.ssh/id_ed25519.pub -o StrictModes=no -o PidFile={folder}/sshd.pid \
    -o UsePAM=no -o Subsystem='sftp internal-sftp'
"""
_INSTALL = """set -e
for one in {debs}; do dpkg-deb --extract $one {folder}/package; done
for one in /usr/lib /usr/share; do
    mount -t overlay -o lowerdir={folder}/package$one:$one none $one
done
"""
"""As dpkg lays it out, where only this computer sees it."""
_CONSOLE = """
hotset console > console.log 2>&1 < /dev/null & trap "kill $!" EXIT
until curl --silent --output /dev/null http://127.0.0.1:8480/login; do sleep 0.5; done
(cat pw; echo) > password; set -e -o pipefail
"""
_DISKS = """set -e
for one in 'shop slow 64MiB' 'dwh other 64MiB'; do
    set -- $one
    hotset tier create $1 --kind userspace --flash {folder}/flash --origin {folder}/$2 \
        --database oltp --cache $3 --yes
done
mke2fs -q -F -t ext4 /dev/hotset/shop
mkdir /srv/db; mount /dev/hotset/shop /srv/db
"""
_DATABASE = """set -e
pg=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
chown postgres /srv/db
as() {{ runuser -u postgres -- "$@"; }}
as $pg/initdb -D /srv/db/data -U me -N -A scram-sha-256 --pwfile {folder}/pw > /dev/null
as $pg/pg_ctl -D /srv/db/data -w -l /srv/db/log -o "-c listen_addresses=127.0.0.1 \
-c unix_socket_directories= -c fsync=off -c max_wal_size=64MB" start > /dev/null
export PGPASSWORD={password}
psql="psql -q -h 127.0.0.1 -U me -v ON_ERROR_STOP=1"
for one in app tpcc shop; do
    $psql -d postgres -c "CREATE ROLE $one SUPERUSER LOGIN PASSWORD '{password}'"
done
for one in shop tpcc tpch; do $psql -d postgres -c "CREATE DATABASE $one"; done
$psql -d shop -c "CREATE TABLE orders AS SELECT g AS id, repeat('x', 300) AS t FROM
generate_series(1, 20000) g; ALTER TABLE orders ADD PRIMARY KEY (id);
CREATE TABLE customer AS SELECT * FROM orders; CREATE TABLE stock AS SELECT * FROM orders;
CREATE TABLE item AS SELECT g AS id, 9 + g % 2 AS price, 10 AS stock FROM
generate_series(1, 100000) g; ALTER TABLE item ADD PRIMARY KEY (id);
CREATE TABLE sale (item int, price int);
CHECKPOINT"
mkdir -p /srv/db/base/archive; head -c 2000000 /dev/urandom > /srv/db/base/archive/old
sync -f /srv/db
echo 'SELECT count(*) FROM sale;' > {folder}/search.sql
for one in shop backup; do
    hotset whatif trace tpcc --warehouses 2 --buffer 16MiB --tpm 6000 --seconds 20 \
        --output {folder}/$one.trace
done
"""
_STOP = """
[ -e /srv/db/data/postmaster.pid ] || exit 0
pg=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
runuser -u postgres -- $pg/pg_ctl -D /srv/db/data -m fast stop > /dev/null
"""


_RECORDED = """\
  8,16   1        1     0.000000000  4321  Q   R 2048 + 16 [postgres]
  8,16   1        2     0.000001200  4321  D   R 2048 + 16 [postgres]
  8,16   0        3     0.004100000  4322  Q   W 4096 + 8 [postgres]
"""
"""As blkparse prints what blktrace recorded."""


def _own_script() -> str:
    """What the page of benchmarks shows as a script."""
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    return re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]


def _set_up(desk: Desk) -> None:
    folder = desk.folder
    for name, mib in (("flash", 512), ("slow", 4096), ("other", 128)):
        with (folder / name).open("wb") as file:
            file.truncate(mib << 20)
    (folder / "home").mkdir()
    (folder / "blkparse.txt").write_text(_RECORDED, encoding="utf-8")
    (folder / "checkout.sql").write_text(_own_script(), encoding="utf-8")
    models = ROOT / "cache-layer/crates/storage-model/models"
    shutil.copy(models / "hybrid-disk-2014.json", folder / "my-hybrid.json")
    for run in (MEASURED, LATER):
        kept = folder / "home/.local/share/hotset/runs" / run
        kept.mkdir(parents=True)
        shutil.copy(ROOT / f"reports/published/{run}/result.json", kept)


@contextmanager
def _desk(place: str, packages: tuple[Path, ...]) -> Iterator[Desk]:
    # Where the database server's account comes, too.
    folder = Path(tempfile.mkdtemp(prefix="hotset-desk-"))
    names = {"folder": folder, "password": PASSWORD}
    try:
        with enclosed("/srv", network=True) as machine:
            program = Path(PACKAGED, "bin") if packages else Path(sys.executable).parent
            desk = Desk(machine, folder, program)
            try:
                _set_up(desk)
                desk.sh(_WORLD.format(**names))
                if packages:
                    debs = " ".join(map(str, packages))
                    desk.sh(_INSTALL.format(debs=debs, **names))
                if place != "before":
                    desk.sh(_DISKS.format(**names))
                    desk.sh(_DATABASE.format(**names))
                yield desk
            finally:
                desk.sh(_STOP, check=False)
                desk.sh(f"umount /srv/db; kill $(cat {folder}/sshd.pid)", check=False)
                for flash in flash_devices.inventory(machine).flash_devices:
                    lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, print)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(
    scope="module", params=["checkout", pytest.param("package", marks=pytest.mark.night)]
)
def packages(request: pytest.FixtureRequest) -> tuple[Path, ...]:
    """The packages that are installed; none: `hotset` is the checkout's."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("needs root and /dev/fuse")
    if request.param == "checkout":
        return ()
    made = sorted((ROOT / "dist").glob(f"hotset*_{__version__}_*.deb"))
    if len(made) != 2:
        pytest.skip("no packages in dist: make release")
    return tuple(made)


@pytest.fixture(scope="module")
def shared_desk(packages: tuple[Path, ...]) -> Iterator[Desk]:
    with _desk("shared", packages) as there:
        yield there


@pytest.fixture
def desk(
    request: pytest.FixtureRequest, block: Block, packages: tuple[Path, ...]
) -> Iterator[Desk]:
    if block.place == "shared":
        there = request.getfixturevalue("shared_desk")
        there.before.clear()
        yield there
        return
    with _desk(block.place, packages) as there:
        yield there


def _parameters() -> Iterator[object]:
    for block in RUN:
        marks = [pytest.mark.lab, *([] if block.page in ACTS else [pytest.mark.night])]
        yield pytest.param(block, id=f"{block.page}:{block.line}", marks=marks)


@pytest.mark.parametrize("block", _parameters())
def test_a_block_does_what_its_page_says(desk: Desk, block: Block) -> None:
    """How each command ends, and what heads what it shows, is as it was written down: for the
    checkout and the package alike."""
    shown = {}
    for command in block.commands:
        rc, out = desk.follow(command)
        shown[command] = f"{rc} {_head(out, desk.folder)}"
    kept = json.loads(SHAPES.read_text(encoding="utf-8")) if SHAPES.exists() else {}
    if "HOTSET_UPDATE_GOLDEN" in os.environ:
        kept.setdefault(block.page, {}).update(shown)
        text = json.dumps(kept, ensure_ascii=False, indent=1, sort_keys=True)
        SHAPES.write_text(f"{text}\n", encoding="utf-8")
    assert shown == {one: kept[block.page].get(one) for one in shown}


@pytest.mark.lab
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        # A total began where somebody first asked, and tables at the disk's own start.
        ("report hit-ratio shop --since 8h", 0, r"since \d.* until"),
        ("report hit-ratio shop --since 8h --by file", 0, r"since \d.* until"),
        # "nothing was counted yet … heat start", which said that counting was going on.
        ("warmup plan heat --disk shop", 0, "heat"),
        ("tier detach shop", 3, r"/srv/db.*umount|mounted"),
        ("lab status", 0, "lab: down"),
        (f"warmup plan database:postgres --disk shop --dsn {DSN}", 0, "database:postgres"),
    ],
)
def test_what_pages_say_of_answers_is_so(
    shared_desk: Desk, command: str, code: int, says: str
) -> None:
    rc, out, err = shared_desk.sh(f"HOME={shared_desk.folder}/else hotset {command}", check=False)
    assert (rc, bool(re.search(says, out + err))) == (code, True), out + err


def _head(out: str, folder: Path) -> str:
    """The first line that is shown, without figures, names of files and tokens, which are random.

    >>> _head("NOPM  12,345 (16 users)", Path("/x"))
    'NOPM # (# users)'
    """
    first = next((line for line in out.splitlines() if line.strip()), "")
    first = re.sub(r"\bhotset_[\w-]{24,}", "…", first.replace(str(folder), "…"))
    first = re.sub("[▁-█ ]{3,}", " ", first)
    return " ".join(re.sub(r"\d[\d.,:/-]*", "#", first).split())


def test_what_is_shown_of_no_page_is_kept() -> None:
    known = {(one.page, command) for one in RUN for command in one.commands}
    kept = json.loads(SHAPES.read_text(encoding="utf-8"))
    assert [(page, one) for page in kept for one in kept[page] if (page, one) not in known] == []

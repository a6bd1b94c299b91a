"""Programs that are put on a server: those for it, recorded, listed, removed. The server is a
real sshd over a small root of busybox's."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from hotset import __version__
from hotset.block import programs
from hotset.core import clock
from hotset.core.errors import HotsetError, NotFoundError
from hotset.core.machines import copies, fit
from hotset.core.machines.base import Machine, MachineGoneError, PrerequisiteMissingError
from hotset.core.machines.ssh import Remote
from tests.fake_machine import FakeMachine
from tests.ssh_server import Server, serving

# A build of its own: an engine at work is used by whoever serves a disk, in whatever namespace, and
# is not to be ended.
_FOLDER = tempfile.TemporaryDirectory(prefix="hotset-copies-")
ENGINE = Path(_FOLDER.name) / programs.find_engine().name
ENGINE.write_bytes(programs.find_engine().read_bytes() + os.urandom(8))
ENGINE.chmod(0o755)
PLACE = copies.place_of(ENGINE)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    yield shared
    shared.plain()
    for name in ("lib/ld-musl-x86_64.so.1", "etc/unit"):
        (shared.root / name).unlink(missing_ok=True)


def left_on(server: Server) -> list[Path]:
    return [one for one in (server.root / str(copies.FOLDER)[1:]).rglob("*") if one.is_file()]


def test_a_program_comes_to_a_server_without_bash_python_or_sftp_and_is_recorded(
    server: Server,
) -> None:
    with server.connected() as machine:
        path = copies.install(machine, ENGINE)
        assert path == str(PLACE)
        assert machine.run([path, "--version"]).stdout.startswith("hotset-engine")
        (found,) = copies.copies(machine).copies
        assert (found.version, found.architecture) == (
            __version__,
            fit.architecture_of(ENGINE),
        )
        assert (found.state, found.sha256) == ("complete", copies.digest(ENGINE))
        assert (found.bytes, found.used_by) == (ENGINE.stat().st_size, ())
        assert found.copied_by is not None
        assert "@" in found.copied_by
        written = {one: one.stat().st_mtime_ns for one in left_on(server)}
        assert copies.install(machine, ENGINE) == path
        assert {one: one.stat().st_mtime_ns for one in left_on(server)} == written


@pytest.mark.parametrize(
    ("uname", "words"),
    [
        ("echo FreeBSD amd64", "it is FreeBSD amd64, and hotset's programs are for Linux on"),
        ("false", "it is unknown what it is, and"),
        ("echo Linux riscv64", "it is Linux riscv64, and"),
        ("echo Linux {other}", "architecture is {other}, and .* is for {own}: put hotset-engine"),
    ],
)
def test_a_server_of_another_kind_is_refused_before_anything_is_copied(
    server: Server, uname: str, words: str
) -> None:
    own = fit.architecture_of(ENGINE)
    (other,) = set(fit.ARCHITECTURES.values()) - {own}
    server.program("uname", uname.format(own=own, other=other))
    with server.connected() as machine:
        refused = words.format(own=own, other=other) + ".*; nothing was copied$"
        with pytest.raises(fit.UnfitError, match=refused):
            copies.install(machine, ENGINE)
    assert not left_on(server)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("noexec", r"does not run there: the file system is mounted noexec, .*Permission denied"),
        ("ro", "Read-only file system"),
        ("size=2m", "No space left on device"),
    ],
)
def test_a_folder_that_cannot_keep_or_run_it_is_refused_and_left_as_it_was(
    tmp_path: Path, options: str, words: str
) -> None:
    with serving(tmp_path, {"usr/local/lib": options}) as server, server.connected() as machine:
        with pytest.raises(HotsetError, match=words):
            copies.install(machine, ENGINE)
        assert machine.run(["find", "/usr/local/lib", "-type", "f"]).stdout == ""


class Breaking(Remote):
    """Its connection breaks off half-way through a copy."""

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        half = source.read_bytes()[: source.stat().st_size // 2]
        part = self._account.known_hosts.with_name("part")
        part.write_bytes(half)
        super().put(part, target, mode)
        self.abort()
        raise MachineGoneError("the connection broke off")


def test_a_copy_that_broke_off_is_never_run_is_listed_and_goes(server: Server) -> None:
    with server.connected(Breaking) as machine, pytest.raises(MachineGoneError):
        copies.install(machine, ENGINE)
    with server.connected() as machine:
        (found,) = copies.copies(machine).copies
        assert found.state == "unfinished"
        path = copies.install(machine, ENGINE)
        assert machine.run([path, "--version"]).rc == 0
        assert {one.state for one in copies.copies(machine).copies} == {"complete", "unfinished"}
        assert len(copies.remove(machine, (), unused=False)) == 2
    assert not left_on(server)


def test_a_copy_that_arrives_with_other_bytes_is_refused_and_removed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Remote.put

    def broken(self: Remote, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        part = self._account.known_hosts.with_name("part")
        *first, last = source.read_bytes()
        part.write_bytes(bytes((*first, last ^ 1)))
        put(self, part, target, mode)

    monkeypatch.setattr(Remote, "put", broken)
    refused = pytest.raises(copies.CannotCopyError, match="did not arrive as it was sent")
    with server.connected() as machine, refused:
        copies.install(machine, ENGINE)
    assert not left_on(server)


def test_two_that_copy_at_once_do_not_disturb_each_other(server: Server) -> None:
    """They once wrote into one file, and the second found it gone."""
    both = threading.Barrier(2, timeout=60)

    class Together(Remote):
        def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
            super().put(source, target, mode)
            both.wait()

    def install() -> str:
        with server.connected(Together) as machine:
            return copies.install(machine, ENGINE)

    with ThreadPoolExecutor(2) as pool:
        found = [one.result() for one in [pool.submit(install), pool.submit(install)]]
    assert found == [str(PLACE)] * 2
    with server.connected() as machine:
        (one,) = copies.copies(machine).copies
        assert one.state == "complete"


_END = """\
for exe in /proc/[0-9]*/exe; do
    case $(readlink "$exe") in "$1"*) kill "$(basename "${exe%/exe}")" ;; esac
done
"""


@contextmanager
def running(machine: Machine) -> Iterator[None]:
    """The engine at work there, for as long as the block lasts."""
    path = copies.install(machine, ENGINE)
    argv = [path, "copy", "--from", "/dev/zero", "--bytes", "1000000000", "--rate", "1000"]
    try:
        with machine.stream([*argv, "--piece", "4096"]):
            assert clock.wait_until(
                lambda: any(one.used_by for one in copies.copies(machine).copies), 60
            )
            yield
    finally:
        machine.run(["sh", "-c", _END, "end", path])
    assert clock.wait_until(
        lambda: not any(one.used_by for one in copies.copies(machine).copies), 60
    )


def test_what_is_used_is_not_removed_and_the_others_may_go(server: Server, tmp_path: Path) -> None:
    other = tmp_path / ENGINE.name
    other.write_bytes(ENGINE.read_bytes() + b"another build")
    other.chmod(0o755)
    with server.connected() as machine:
        with running(machine):
            copies.install(machine, other)
            (server.root / "etc/unit").write_text(f"ExecStart={copies.place_of(other)} run\n")
            with pytest.raises(copies.InUseError) as refused:
                copies.remove(machine, (), unused=False)
            # In the order of their names, which are of what they hold.
            whys = sorted(
                one.partition(" is used by ")[2] for one in str(refused.value).split("; ")
            )
            assert whys[0] == "/etc/unit"
            assert re.fullmatch(r"process \d+", whys[1])
            assert copies.remove(machine, (), unused=True) == []
            (server.root / "etc/unit").unlink()
            (gone,) = copies.remove(machine, (), unused=True)
            assert gone.path == str(copies.place_of(other))
            with pytest.raises(copies.InUseError, match="used by process"):
                copies.remove(machine, (PLACE.parent.name,), unused=False)
        assert len(copies.remove(machine, (PLACE.parent.name[:4],), unused=False)) == 1
        with pytest.raises(NotFoundError, match="there is no copy 'feed'; there are: none"):
            copies.remove(machine, ("feed",), unused=False)
    assert not left_on(server)


def test_what_somebody_changed_stays(server: Server) -> None:
    with server.connected() as machine:
        path = copies.install(machine, ENGINE)
        with (server.root / path[1:]).open("ab") as file:
            file.write(b"!")
        with pytest.raises(copies.InUseError, match="is not what hotset copied: look at it"):
            copies.remove(machine, (), unused=False)
        assert machine.run(["test", "-e", path], check=False).rc == 0


def test_a_copy_of_an_older_version_has_no_record_and_can_be_removed(server: Server) -> None:
    with server.connected() as machine:
        path = copies.install(machine, ENGINE)
        machine.run(["rm", f"{path}.json"])
        (found,) = copies.copies(machine).copies
        assert (found.version, found.copied_by, found.state) == (None, None, "complete")
        assert copies.remove(machine, (), unused=False) == [found]


def test_the_program_for_another_architecture_is_found_beside_and_where_cargo_puts_it(
    tmp_path: Path,
) -> None:
    own = fit.architecture_of(ENGINE)
    (other,) = set(fit.ARCHITECTURES.values()) - {own}
    number = next(number for number, name in fit.ARCHITECTURES.items() if name == other)
    held = bytearray(ENGINE.read_bytes())
    held[18] = number
    here = tmp_path / "release" / ENGINE.name
    for file in (here, here.parent / other / here.name):
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ENGINE, file)
    of_another = FakeMachine({"uname -sm": f"Linux {other}\n"})
    with pytest.raises(fit.UnfitError, match=f"is for {own}: put"):
        # What is in the folder of its name is for this one all the same.
        fit.choose(of_another, here)
    for place in (f"{other}-unknown-linux-gnu/release", f"release/{other}"):
        file = tmp_path / place / here.name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(held)
        assert fit.choose(of_another, here) == file
    assert fit.choose(FakeMachine(), here) == here


def test_on_another_architecture_each_program_is_found_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second program once was the first."""
    own = fit.architecture_of(ENGINE)
    (other,) = set(fit.ARCHITECTURES.values()) - {own}
    number = next(number for number, name in fit.ARCHITECTURES.items() if name == other)
    both = (ENGINE, programs.find_boot())
    (tmp_path / other).mkdir()
    for one in both:
        shutil.copy(one, tmp_path / one.name)
        held = bytearray(one.read_bytes())
        held[18] = number
        (tmp_path / other / one.name).write_bytes(held)
    machine = FakeMachine({"uname -sm": f"Linux {other}\n"})
    monkeypatch.setattr(copies, "_is_there", lambda _, place: str(place) in machine.files)
    for _ in range(2):
        for one in both:
            path = copies.install(machine, tmp_path / one.name)
            assert path == str(copies.place_of(tmp_path / other / one.name))


def test_a_script_is_no_program() -> None:
    with pytest.raises(PrerequisiteMissingError, match="is no program: run `make build`"):
        fit.architecture_of(Path(__file__))


def test_a_record_is_json_of_its_own() -> None:
    record = json.loads(copies._record(ENGINE))
    assert record.keys() == {"version", "architecture", "sha256", "copied_at", "copied_by"}

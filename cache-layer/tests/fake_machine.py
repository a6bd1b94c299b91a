"""A machine that records what it is told; for commands that need a kernel with dm-cache or root."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.block import label
from hotset.block.devicemapper import Place, stack
from hotset.core.machines import copies
from hotset.core.machines.base import Command, CommandError, Machine, Result, check_declared
from hotset.core.units import Bytes
from hotset.tier import devices
from hotset.tier.base import TierSpec
from hotset.tier.dmcache.tier import DmCache

_SCRATCH = re.compile(r"/run/hotset/scratch/(disk-[a-z0-9-]+|machine)/[0-9a-f]{12}")
Answer = str | int | Result | Callable[[], str]


def place(spec: TierSpec, origin: str | PurePosixPath = "/dev/origin") -> Place:
    """METADATA | CACHE | VOLUME from the beginning of /dev/flash, for a disk called `data`."""
    sizes = (("meta", spec.metadata), ("cache", spec.cache), ("hotset-volume", spec.volume))
    meta, cache, volume = stack(Bytes(2**50), sizes, Bytes(0))
    flash = PurePosixPath("/dev/flash")
    return Place("data", flash, PurePosixPath(origin), meta.parts, cache.parts, volume)


def decided(action: str, reason: str = "none", origin: str = "same", why: str = "why") -> str:
    """What ``hotset-boot decide`` says."""
    return json.dumps({"action": action, "reason": reason, "origin": origin, "why": why})


def record_of(machine: FakeMachine, flash: PurePosixPath, slot: int, body: str) -> None:
    """A disk's record, without a command for it."""
    calls = list(machine.calls)
    label.write_record(machine, flash, slot, body)
    machine.calls = calls


def dm_cache(machine: FakeMachine, spec: TierSpec) -> DmCache:
    return DmCache(machine, spec, place(spec))


@dataclass(frozen=True)
class Call:
    """One command as it was given."""

    argv: tuple[str, ...]
    stdin: str | None
    user: str | None

    @property
    def line(self) -> str:
        return shlex.join([PurePosixPath(self.argv[0]).name, *self.argv[1:]])


class FakeMachine(Machine):
    """Answers by the beginning of the command; an ``int`` is an exit code.

    Beside that it keeps files and the text that ``dd`` writes to its devices, in blocks of 4 KiB.
    """

    kind = "vm"

    def __init__(
        self, answers: Mapping[str, Answer] | None = None, lines: Sequence[str] = ()
    ) -> None:
        self.answers = dict(answers or {})
        self.lines = list(lines)
        self.calls: list[Call] = []
        self.files: dict[str, tuple[str, int]] = {}
        self.sectors: dict[tuple[str, int], str] = {}

    @property
    def commands(self) -> list[str]:
        """What was run; scratch folders, whose names are random, as /run/hotset."""
        return [_SCRATCH.sub("/run/hotset", call.line) for call in self.calls]

    def execute(self, command: Command) -> Result:
        check_declared(command.argv, command.user)
        call = Call(command.argv, command.stdin, command.user)
        self.calls.append(call)
        given = self._given(call.line)
        if given is None and command.argv[-2:-1] == ("devices",):
            return self._work_on_devices(command)
        if isinstance(given, Result):
            return given
        answer = self._kept(call) if given is None else given
        rc, out = (answer, "") if isinstance(answer, int) else (0, answer)
        for line in out.splitlines() if command.on_line else ():
            assert command.on_line is not None
            command.on_line(line)
        # What dd read, as it says in every language.
        err = "1+0 \n" if rc == 0 and "status=noxfer" in call.argv else ""
        return Result(command.argv, rc, out, err, 0.0)

    def _given(self, line: str) -> str | int | Result | None:
        """What a test has it answer."""
        answer = next((one for start, one in self.answers.items() if line.startswith(start)), None)
        return answer() if callable(answer) else answer

    def _work_on_devices(self, command: Command) -> Result:
        """The commands that the program itself would run, until one fails."""
        assert command.stdin is not None
        described = json.loads(command.stdin)
        origin, listed = described["place"]["origin"], self._given("dmsetup ls")
        size, sector = (
            str(self._given(f"blockdev --get{what} {origin}") or default)
            for what, default in (("size64", 0), ("ss", 512))
        )
        facts = {
            "origin_size": int(size),
            "sector_size": int(sector),
            "active": [line.split()[0] for line in str(listed or "").splitlines() if "\t" in line],
        }

        action = command.argv[-1]
        try:
            said = devices.rehearse(action, {**described, "facts": facts}, self)
        except CommandError as error:
            failed = error.result
            code = {"bcache-super-show": 6, "cache_check": 6, "modprobe": 7}.get(failed.argv[0], 4)
            words = f"hotset: `{shlex.join(failed.argv)}` failed: {failed.rc}"
            return Result(command.argv, code, "", words, 0.0)
        return Result(command.argv, 0, said, "", 0.0)

    def _kept(self, call: Call) -> str | int:
        """What the files and devices that are kept make of a command."""
        program, *words = call.line.split()
        if program == "test" and words[0] == "-f":
            return 1  # a device is no file
        if program == "cat" and words:
            return self.files.get(call.argv[1], ("", 0))[0]
        if program == "ls" and words:
            inside = (PurePosixPath(path) for path in self.files)
            return "".join(f"{one.name}\n" for one in inside if str(one.parent) == words[0])
        if program == "find":
            return self._find(words)
        if program == "rm":
            for word in words:
                self.files.pop(word, None)
        if program == "dd":
            return self._dd(dict(word.split("=", 1) for word in call.argv[1:]), call.stdin)
        return self._own(call.argv)

    def _own(self, argv: tuple[str, ...]) -> str:
        """hotset's own programs fit, and are there once they were copied."""
        if argv[0] == "setsid":
            argv = argv[2:]
        if PurePosixPath(argv[0]).name == "hotset-boot":
            return self._boot(argv)
        if argv == ("uname", "-sm"):
            return f"Linux {os.uname().machine}\n"
        if argv[3:4] == (copies.ENTER,):
            self.files[argv[5]] = self.files.pop(argv[4])
        return ""

    def _find(self, words: list[str]) -> str:
        if "tail" in words:
            inside = sorted(path for path in self.files if path.startswith(f"{words[0]}/"))
            return "\n".join(f"==> {path} <==\n{self.files[path][0]}" for path in inside)
        if words[0] != "-H":
            return ""
        paths = words[1 : words.index("-maxdepth")]
        return "".join(f"b 5:{self._node(path)} {path}\n" for path in paths)

    def _boot(self, argv: tuple[str, ...]) -> str:
        """A disk that may come up as it is, and the record of one that is put down; how it decides
        is its own tests' matter."""
        if argv[1] == "content":
            return "5f3c9f4e\n"
        if argv[1] == "writes":
            return "4096\n"
        if argv[1] in ("users", "await"):
            return ""
        verb, flash, disk = argv[1], argv[3], argv[4]
        if verb == "decide":
            return decided("start")
        there = self.answers.get("dmsetup ls", "")
        if verb == "stop" and isinstance(there, str) and f"hotset-{disk}\t" not in there:
            return ""
        if verb in ("mark", "stop"):
            word = argv[5].replace("flushed", "clean") if verb == "mark" else "dirty"
            text = "".join(
                text for (node, _), text in self.sectors.items() if node == self._node(flash)
            )
            found = re.search(
                rf'"name":"{disk}","kind".*?"identity":"([^"]*)".*?"record":(\d+)', text
            )
            key, slot = (found[1] or disk, int(found[2])) if found else (disk, 0)
            record_of(
                self, PurePosixPath(flash), slot, f'{key} {word} {{"sequence":1,"seen":{{}}}}'
            )
        return ""

    def _dd(self, options: dict[str, str], stdin: str | None) -> str:
        size = int(options.get("bs", "512").replace("k", "000").replace("M", "000000"))
        source, target = options.get("if"), options.get("of")
        if target is None and source is not None:
            first = int(options.get("skip", 0)) * size // 4096
            blocks = range(first, first + int(options.get("count", 0)) * size // 4096)
            return "".join(self.sectors.get((self._node(source), at), "") for at in blocks)
        if target is not None:
            first = int(options.get("seek", 0)) * size // 4096
            length = len(stdin) if stdin else int(options.get("count", 0)) * size
            for at in range(length // 4096):
                part = (stdin or "")[at * 4096 : (at + 1) * 4096]
                self.sectors[self._node(target), first + at] = part
        return ""

    def _node(self, device: str) -> str:
        """A device by its kernel's name, as ``readlink -f`` is to answer."""
        answer = self.answers.get(f"readlink -f {device}", device)
        return answer.strip() if isinstance(answer, str) else device

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        self.calls.append(Call(check_declared(argv, None), None, None))
        yield iter(["held"] if "hotset-lock" in argv else self.lines)

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        kept = (source.read_text(errors="replace"), mode)
        self.files[str(target)] = self.files[_SCRATCH.sub("/run/hotset", str(target))] = kept

    def replace(self, text: str, target: PurePosixPath, mode: int = 0o644) -> None:
        self.calls.append(Call(("replace", str(target)), text, None))
        self.files[str(target)] = (text, mode)

    def get(self, source: PurePosixPath, target: Path) -> None:
        target.write_text(self.files[str(source)][0])

    def address(self, port: int) -> tuple[str, int]:
        return "127.0.0.1", 50_000 + port

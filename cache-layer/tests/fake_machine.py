"""A machine that records what it is told; for commands that need a kernel with dm-cache or root."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.cachelayer.dmcache import DmCache
from hotset.cachelayer.flash import Place, stacked
from hotset.cachelayer.machine import DEFAULT_TIMEOUT_S, CommandError, Result, declared
from hotset.cachelayer.tier import TierSpec
from hotset.cachelayer.units import Bytes

Answer = str | int | Callable[[], str]


def place(spec: TierSpec, origin: str | PurePosixPath = "/dev/origin") -> Place:
    """METADATA | CACHE | VOLUME from the beginning of /dev/flash, for a disk called `data`."""
    sizes = (("meta", spec.metadata), ("cache", spec.cache), ("hotset-volume", spec.volume))
    meta, cache, volume = stacked(Bytes(2**50), sizes, Bytes(0))
    flash = PurePosixPath("/dev/flash")
    return Place("data", flash, PurePosixPath(origin), meta.parts, cache.parts, volume)


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


class FakeMachine:
    """Answers by the beginning of the command; an ``int`` is an exit code."""

    kind = "vm"

    def __init__(
        self, answers: Mapping[str, Answer] | None = None, lines: Sequence[str] = ()
    ) -> None:
        self.answers = dict(answers or {})
        self.lines = list(lines)
        self.calls: list[Call] = []
        self.files: dict[str, tuple[str, int]] = {}

    @property
    def commands(self) -> list[str]:
        return [call.line for call in self.calls]

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,  # noqa: ARG002
        check: bool = True,
        user: str | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Result:
        declared(argv, user)
        call = Call(tuple(argv), stdin, user)
        self.calls.append(call)
        answer: Answer = ""
        for start, given in self.answers.items():
            if call.line.startswith(start):
                answer = given
                break
        if callable(answer):
            answer = answer()
        rc, out = (answer, "") if isinstance(answer, int) else (0, answer)
        for line in out.splitlines() if on_line else ():
            assert on_line is not None
            on_line(line)
        result = Result(tuple(argv), rc, out, "", 0.0)
        if check and rc:
            raise CommandError(self.kind, result)
        return result

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        self.calls.append(Call(declared(argv, None), None, None))
        yield iter(self.lines)

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        self.files[str(target)] = (source.read_text(errors="replace"), mode)

    def get(self, source: PurePosixPath, target: Path) -> None:
        target.write_text(self.files[str(source)][0])

    def port(self, wanted: int) -> int:
        return wanted

    def address(self, port: int) -> tuple[str, int]:
        return "127.0.0.1", 50_000 + port

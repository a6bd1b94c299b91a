"""The writer of the kill campaign: what it says is lost is, and nothing else. On this computer
instead of a guest; the processes are the same."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from campaign.writer import Writer
from hotset.core.machines.local import Local

SIZE, SLOTS = 4096, 512


class Here:
    """What a writer needs of a guest."""

    @contextmanager
    def talk(self, argv: Sequence[str]) -> Iterator[Callable[[str, float], str]]:
        with subprocess.Popen(argv, stdin=-1, stdout=-1, text=True, bufsize=1) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            asked, answers = process.stdin, process.stdout

            def ask(line: str, limit_s: float) -> str:  # noqa: ARG001
                asked.write(f"{line}\n")
                return answers.readline()

            yield ask
            asked.close()


def written(file: Path, records: int) -> Writer:
    writer = Writer(Here(), PurePosixPath(file))
    writer.require_more(max(0, records - writer.acknowledged))
    writer.end()
    assert writer.acknowledged >= records
    return writer


@pytest.mark.parametrize("records", [64, SLOTS + 64])
def test_all_that_was_acknowledged_is_found(tmp_path: Path, records: int) -> None:
    file = tmp_path / "records"
    assert written(file, records).missing(Local(), PurePosixPath(file)) is None


def test_an_older_a_torn_and_a_lacking_record_are_lost(tmp_path: Path) -> None:
    file = tmp_path / "records"
    writer = written(file, SLOTS + 64)
    older = tmp_path / "older"
    written(older, 64)
    good = file.read_bytes()
    first = writer.acknowledged - 1 - (writer.acknowledged - 1) % SLOTS
    for spoilt in (
        older.read_bytes()[:SIZE] + good[SIZE:],
        good[: SIZE // 2] + bytes(SIZE // 2) + good[SIZE:],
    ):
        file.write_bytes(spoilt)
        lost = writer.missing(Local(), PurePosixPath(file))
        assert lost is not None
        assert f"1 acknowledged records lack: {first} (there is " in lost
    file.write_bytes(good[: 100 * SIZE])
    assert "acknowledged records lack" in str(writer.missing(Local(), PurePosixPath(file)))


def test_a_writer_that_cannot_write_says_why() -> None:
    with pytest.raises(AssertionError, match="No space left"):
        Writer(Here(), PurePosixPath("/dev/full"))

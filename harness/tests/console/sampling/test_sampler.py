"""One reader for the record and for all who watch, as long as the console runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from hotset.console import app
from hotset.console.sampling.reader import Reader, Sample
from hotset.console.sampling.sampler import Sampler
from hotset.core.clock import Moment
from hotset.monitoring.history.recorder import Recorder


class Source:
    """Counts how often it is read and closed."""

    def __init__(self) -> None:
        self.reads = self.closed = 0

    def read(self) -> Sample:
        self.reads += 1
        return Sample(Moment(float(self.reads)), ())

    def close(self) -> None:
        self.closed += 1


async def take(frames: AsyncIterator[bytes | None], count: int) -> list[bytes | None]:
    async with aclosing(frames) as stream:  # type: ignore[type-var]
        return [await anext(stream) for _ in range(count)]


def test_fifty_watch_and_one_reads_and_encodes() -> None:
    source, encoded = Source(), []

    def encode(sample: Sample) -> bytes:
        encoded.append(sample)
        return str(sample.moment.wall).encode()

    async def watch() -> None:
        shared = Sampler(source.read, source.close, encode, 0.1, unwatched_s=60)
        shared.start()
        seen = await asyncio.gather(*(take(shared.frames(5), 4) for _ in range(50)))
        assert all(one == seen[0] for one in seen), "all see the same"
        assert len(set(seen[0])) == 4
        assert source.reads <= 7
        assert len(encoded) <= source.reads
        await shared.stop()

    asyncio.run(watch())


def test_it_reads_without_anyone_who_watches_and_encodes_nothing() -> None:
    source = Source()

    async def run() -> None:
        shared = Sampler(source.read, source.close, lambda _: pytest.fail("encoded"), 60, 0.1)
        shared.start()
        while source.reads < 4:
            await asyncio.sleep(0.01)
        await shared.stop()
        assert not shared.working
        assert source.closed == 1, "the connection is given up"
        before = source.reads
        await asyncio.sleep(0.3)
        assert source.reads == before

    asyncio.run(asyncio.wait_for(run(), 60))


def test_who_begins_to_watch_does_not_wait_out_a_long_rest() -> None:
    source = Source()

    async def run() -> None:
        shared = Sampler(source.read, source.close, lambda _: b"seen", 0.1, unwatched_s=3600)
        shared.start()
        while not source.reads:
            await asyncio.sleep(0.01)
        assert await take(shared.frames(60), 1) == [b"seen"]
        await shared.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_machine_out_of_reach_is_not_called_every_few_seconds() -> None:
    """Its sshd logs each try, and may lock out whoever fails too often."""
    reads = []

    def read() -> Sample:
        reads.append(1)
        return Sample(Moment(1.0), (), error="Permission denied for user root on host db1")

    async def run() -> None:
        shared = Sampler(read, lambda: None, lambda _: b"", 0.1, unwatched_s=0.1)
        shared.start()
        await asyncio.sleep(0.7)
        assert len(reads) == 2, "one failure alone may be a hiccup"
        await take(shared.frames(60), 2)
        assert len(reads) >= 4, "who watches learns of it soon when it is back"
        await shared.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_fault_of_one_reading_is_logged_and_the_next_is_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reads: list[int] = []

    def read() -> Sample:
        reads.append(1)
        if len(reads) == 1:
            raise RuntimeError("a fault of the program")
        return Sample(Moment(2.0), ())

    async def run() -> None:
        shared = Sampler(read, lambda: None, lambda _: b"whole", 0.1, unwatched_s=0.1)
        shared.start()
        assert await take(shared.frames(60), 1) == [b"whole"]
        await shared.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(asyncio.wait_for(run(), 60))
    assert "a fault of the program" in caplog.text


def test_a_fault_of_the_record_takes_no_reading_from_those_who_watch(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Recorder(tmp_path / "local.sqlite")

    def fails(*_: object) -> None:
        raise KeyError("u1")

    monkeypatch.setattr(broken, "take", fails)
    monkeypatch.setattr(Reader, "read", lambda _: Sample(Moment(2.0), ()))
    with caplog.at_level(logging.ERROR):
        assert app._sampler("local", broken)._read() == Sample(Moment(2.0), ())
    assert "a reading was not recorded" in caplog.text


def test_who_waits_for_a_slow_machine_is_not_left_without_a_sign() -> None:
    def slow() -> Sample:
        time.sleep(0.5)
        return Sample(Moment(1.0), ())

    async def watch() -> None:
        shared = Sampler(slow, lambda: None, lambda _: b"at last", 0.1)
        shared.start()
        assert await take(shared.frames(0.2), 3) == [None, None, b"at last"]
        await shared.stop()

    asyncio.run(watch())

"""The raffle: every ticket is drawn, and each read knows which layer served it."""

import json
from collections import Counter
from pathlib import Path

import pytest

from hotset.bench.disks import raffle
from hotset.bench.disks.raffle import RaffleError
from hotset.core.units import Bytes
from hotset.reports.model.disks import RaffleDraw
from tests.cli_server import CommandLine
from tests.support.marks import needs_root

pytestmark = pytest.mark.night

SIZE = Bytes(4 * 1024**2)
WEIGHTS = {"a": 1, "b": 3}


def draw(seconds: float, memory: float = 0.0, from_flash: float | None = None) -> RaffleDraw:
    return RaffleDraw(
        name="a",
        seconds=seconds,
        bytes=1_000_000,
        in_memory=memory,
        major_faults=0,
        from_flash=from_flash,
    )


def test_a_hundred_tickets_as_published() -> None:
    drawn = Counter(raffle.tickets(raffle.WEIGHTS, 1))
    assert sum(drawn.values()) == 100
    assert {name: drawn[name] for name in "adfj"} == {"a": 4, "d": 10, "f": 24, "j": 2}
    assert raffle.tickets(raffle.WEIGHTS, 1) == raffle.tickets(raffle.WEIGHTS, 1)
    assert raffle.tickets(raffle.WEIGHTS, 1) != raffle.tickets(raffle.WEIGHTS, 2)


def test_the_page_cache_is_seen(tmp_path: Path) -> None:
    place = raffle.prepare(tmp_path, tuple(WEIGHTS), SIZE)
    file = place / "a"
    file.read_bytes()
    assert raffle.in_memory(file) == 1
    warm = raffle.hold(place, WEIGHTS, seed=1, number=0, cold=False)
    assert warm.served_by == "page cache"
    assert sum(one.major_faults for one in warm.draws) == 0
    assert [(one.name, one.reads) for one in raffle.list_files(warm)] == [("a", 1), ("b", 3)]


def test_a_dropped_file_comes_from_the_device(tmp_path: Path) -> None:
    place = raffle.prepare(tmp_path, tuple(WEIGHTS), SIZE)
    raffle.drop(place / "a")
    if raffle.in_memory(place / "a") > 0:
        pytest.skip(f"{tmp_path} lies in memory: nothing there can be dropped")
    cold = raffle.hold(place, WEIGHTS, seed=1, number=0, cold=True)
    assert cold.served_by == "device"
    assert sum(one.major_faults for one in cold.draws) > 0


def test_a_device_that_counts_says_what_its_flash_served() -> None:
    def served_by(*shares: float | None, memory: float = 0.0) -> str:
        draws = tuple(draw(1, memory, share) for share in shares)
        return raffle.summarize(0, False, draws).served_by

    assert served_by(None, None) == "device"
    assert served_by(0.0, 0.0) == "platters"
    assert served_by(1.0, 1.0) == "flash"
    assert served_by(0.0, 1.0) == served_by(0.5) == "flash and platters"
    assert served_by(1.0, memory=1.0) == "page cache"
    assert served_by(1.0, memory=0.5) == "both"


def test_files_are_written_once_and_removed_and_nobody_elses(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("the user's own")
    place = raffle.prepare(tmp_path, ("a",), SIZE)
    before = (place / "a").stat().st_mtime_ns
    raffle.prepare(tmp_path, ("a",), SIZE)
    assert (place / "a").stat().st_mtime_ns == before
    raffle.remove(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "the user's own"


def test_a_mean_and_a_first_read() -> None:
    found = raffle.summarize(0, False, (draw(1), draw(0.1, memory=1.0)))
    (file,) = raffle.list_files(found)
    assert (file.first_mb_per_s, file.mb_per_s_mean, file.from_page_cache) == (1, 5.5, 1)
    assert found.served_by == "both"


def test_bad_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(RaffleError, match="one ticket"):
        raffle.tickets({"a": 0}, 1)
    with pytest.raises(RaffleError, match="no such folder"):
        raffle.prepare(tmp_path / "none", ("a",), SIZE)


@needs_root
def test_a_raffle_on_a_model_shows_what_its_flash_serves(hotset: CommandLine) -> None:
    words = ["--size", "4MiB", "--passes", "2", "--format", "json"]
    done = hotset("disk", "raffle", "--model", "hybrid-disk-2014", *words)
    assert done.code == 0, done.err
    first, second = json.loads(done.out)["passes"]
    assert first["draws"][0]["from_flash"] < 0.05, "nobody has read it before"
    assert first["served_by"] == "flash and platters"
    assert second["served_by"] == "flash", "it has all of it by then"
    plain = hotset("disk", "raffle", "--model", "hdd-7200", "--passes", "1", *words[:2], *words[4:])
    assert json.loads(plain.out)["passes"][0]["served_by"] == "device"


def test_a_raffle_wants_one_place(hotset: CommandLine, tmp_path: Path) -> None:
    for words in ([], [str(tmp_path), "--model", "hdd-7200"]):
        done = hotset("disk", "raffle", *words)
        assert done.code == 2
        assert "one of them" in done.err
    done = hotset("disk", "raffle", "--model", "hdd-7200", "--keep")
    assert done.code == 2
    assert "gone with it" in done.err

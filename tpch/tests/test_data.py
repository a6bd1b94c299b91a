"""Generated text: whole or not there, reused, cut into chunks."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotset.tpch import data
from hotset.tpch.record import DataFailed, Lacks, LoadProgress

SCALE = 0.001


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a whole data set."""
    folder = tmp_path_factory.mktemp("data")
    data.prepare(folder, SCALE)
    return folder


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No generator may start in this test."""

    def forbidden(*_: object) -> None:
        pytest.fail("the generator was started")

    monkeypatch.setattr(data, "_generate", forbidden)


@pytest.mark.usefixtures("nothing_runs")
def test_a_whole_data_set_is_used_again(home: Path) -> None:
    made = data.prepare(home, SCALE)
    assert made.rows["nation"] == 25
    assert made.rows["orders"] == 1500
    assert made.rows["lineitem"] == sum(
        file.read_text().count("\n") for file in made.files["lineitem"]
    )
    assert not list(home.glob("*unfinished*"))


@pytest.mark.parametrize("damage", ["cut", "gone", "no manifest", "other scale"])
def test_a_data_set_that_is_not_whole_is_made_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    copy = tmp_path / f"sf{SCALE:g}"
    shutil.copytree(home / copy.name, copy)
    (tmp_path / f"{copy.name}.unfinished" / "lineitem").mkdir(parents=True)
    orders, manifest = copy / "orders" / "orders.1.tbl", copy / "manifest.json"
    match damage:
        case "cut":
            orders.write_bytes(orders.read_bytes()[:-10])
        case "gone":
            orders.unlink()
        case "no manifest":
            manifest.unlink()
        case _:
            manifest.write_text(manifest.read_text().replace(f'"scale": {SCALE}', '"scale": 2'))

    def copied(target: Path, *_: object) -> None:
        assert not target.exists()
        shutil.copytree(home / copy.name, target)

    monkeypatch.setattr(data, "_generate", copied)
    assert data.prepare(tmp_path, SCALE).rows["orders"] == 1500
    assert not list(tmp_path.glob("*.unfinished"))


def test_an_interrupted_generation_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(_: LoadProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.prepare(tmp_path, 0.5, interrupt)
    assert [one.name for one in tmp_path.iterdir()] == [".lock"]


@pytest.mark.usefixtures("nothing_runs")
def test_too_little_room_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(data.shutil, "disk_usage", lambda _: Usage(2_000_000_000))
    with pytest.raises(Lacks, match=r"scale 10 takes 11\.0 GB below .*2\.0 GB are free"):
        data.prepare(tmp_path, 10)


def test_a_generator_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Callable[[str], Path]
) -> None:
    script = program("echo first >&2; echo 'No space left on device' >&2; exit 3")
    monkeypatch.setattr(data, "_program", lambda: str(script))
    with pytest.raises(DataFailed, match="ended with code 3: No space left on device"):
        data.prepare(tmp_path, SCALE)
    assert [one.name for one in tmp_path.iterdir() if one.suffix != ".sh"] == [".lock"]


def test_a_generator_that_makes_too_few_rows_is_found_out(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(target: Path, *_: object) -> None:
        shutil.copytree(home / f"sf{SCALE:g}", target)
        (target / "nation" / "nation.1.tbl").write_text("0|ALGERIA|0|x|\n")

    monkeypatch.setattr(data, "_generate", short)
    with pytest.raises(DataFailed, match=r"1 rows of nation .* requires 25"):
        data.prepare(tmp_path, SCALE)


def test_no_generator_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data.shutil, "which", lambda *_, **__: None)
    with pytest.raises(Lacks, match=r"tpchgen-cli is not installed: pip install 'hotset\[bench\]'"):
        data._program()


@settings(max_examples=50)
@given(lines=st.lists(st.text("ab|", max_size=6)), size=st.integers(1, 9))
def test_chunks_are_the_text_without_the_last_bar(
    lines: list[str], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "".join(f"{line}|\n" for line in lines).encode()
    file = tmp_path_factory.getbasetemp() / "chunks.tbl"
    file.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "_CHUNK_BYTES", size)
        assert b"".join(data.chunks(file)) == text.replace(b"|\n", b"\n")


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a shell script to stand in for the generator."""

    def make(text: str) -> Path:
        file = tmp_path / "generator.sh"
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o700)
        return file

    return make

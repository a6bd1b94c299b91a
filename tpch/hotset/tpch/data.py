"""The data of one scale as text files, made by tpchgen-cli and kept for the next load.

A data set is a folder `sf<scale>` with `<table>/<table>.<part>.tbl` and a manifest. It gets that
name only when it is whole: an interrupted generation leaves another name, which the next one
removes.
"""

import json
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hotset.core.extras import Extra, missing_extra

from .record import DataFailed, Lacks, LoadProgress
from .schema import LINEITEM_ROWS, TABLES

GENERATOR = "tpchgen-cli"
_MANIFEST = "manifest.json"
_PART_BYTES = 64_000_000
"""About the size of a part of `lineitem`: small enough that parallel loads keep the order of keys
nearly, and end together; large enough that parts cost nothing."""
_CHUNK_BYTES = 1 << 20
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class DataSet:
    """A whole data set: rows and files of each table, the files in the order of keys."""

    scale: float
    rows: dict[str, int]
    files: dict[str, tuple[Path, ...]]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.stat().st_size for files in self.files.values() for file in files)


def text_bytes(scale: float) -> int:
    """Bytes the text files of a scale take, about."""
    return round(sum(table.text_bytes * (1 if table.fixed else scale) for table in TABLES.values()))


def missing_bytes(folder: Path, scale: float) -> int:
    """Return the bytes that :func:`prepare` would write there: 0 if the data set exists."""
    return 0 if _read(folder / f"sf{scale:g}", scale) is not None else text_bytes(scale)


def prepare(
    folder: Path, scale: float, observe: Callable[[LoadProgress], None] = lambda _: None
) -> DataSet:
    """The data set of a scale below `folder`, generated unless it is there.

    Raises Lacks when there is no generator or no room, DataFailed when generating fails.
    """
    home = folder / f"sf{scale:g}"
    if (kept := _read(home, scale)) is not None:
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        if (kept := _read(home, scale)) is not None:
            return kept  # another process made it meanwhile
        unfinished = folder / f"{home.name}.unfinished"
        for rest in (unfinished, home):
            shutil.rmtree(rest, ignore_errors=True)
        _require_room(folder, scale)
        try:
            _generate(unfinished, scale, observe)
            _seal(unfinished, scale)
            unfinished.rename(home)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    made = _read(home, scale)
    assert made is not None
    return made


def chunks(file: Path) -> Iterator[bytes]:
    """A file's rows as `Session.load` wants them: without the `|` that ends each line.

    Pieces are cut anywhere but between that `|` and its line's end.
    """
    with file.open("rb", buffering=0) as stream:
        rest = b""
        while block := stream.read(_CHUNK_BYTES):
            block = rest + block
            rest = b"|" if block.endswith(b"|") else b""
            yield block[: len(block) - len(rest)].replace(b"|\n", b"\n")
        if rest:
            yield rest


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One generation at a time in a folder; the lock goes with the process, however it ends."""
    with (folder / ".lock").open("w") as lock:
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _require_room(folder: Path, scale: float) -> None:
    needed, free = text_bytes(scale), shutil.disk_usage(folder).free
    if needed * 1.02 > free:
        raise Lacks(
            f"TPC-H data of scale {scale:g} takes {needed / 1e9:.1f} GB below {folder}, where"
            f" {free / 1e9:.1f} GB are free: make room, or set XDG_CACHE_HOME to a larger disk"
        )


def _program() -> str:
    """The generator: beside this Python, else on PATH."""
    for place in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent), None):
        if path := shutil.which(GENERATOR, path=place):
            return path
    raise Lacks(f"{GENERATOR} is not installed: {missing_extra(Extra.BENCH)}")


def _generate(target: Path, scale: float, observe: Callable[[LoadProgress], None]) -> None:
    """Run the generator; its children end with this process, and the last error line is kept."""
    parts = max(1, round(TABLES["lineitem"].text_bytes * scale / _PART_BYTES))
    argv = [
        _program(),
        "tbl",
        "--scale-factor",
        f"{scale:g}",
        "--output-dir",
        str(target),
        "--parts",
        str(parts),
        "--quiet",
    ]
    started, expected = time.monotonic(), text_bytes(scale)
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while process.poll() is None:
                done = sum(file.stat().st_size for file in target.glob("*/*"))
                observe(LoadProgress("data", done, expected, time.monotonic() - started))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
        except BaseException:
            process.kill()
            raise
        assert process.stderr is not None
        complaint = process.stderr.read().strip().splitlines()
    if process.returncode != 0:
        raise DataFailed(
            f"{GENERATOR} ended with code {process.returncode}:"
            f" {complaint[-1] if complaint else 'no message'}"
        )


def _seal(home: Path, scale: float) -> None:
    """Count the rows, hold them against clause 4.2.5, and write the manifest."""
    rows = {name: sum(map(_lines, _parts(home, name))) for name in TABLES}
    for table in TABLES.values():
        expected = table.rows_at(scale)
        # The specification gives lineitem's rows for its own scales only.
        slack = 0.02 if table.name == "lineitem" and scale not in LINEITEM_ROWS else 0
        if abs(rows[table.name] - expected) > expected * slack:
            raise DataFailed(
                f"{GENERATOR} made {rows[table.name]} rows of {table.name} at scale {scale:g},"
                f" clause 4.2.5 requires {expected}"
            )
    sizes = {
        str(part.relative_to(home)): part.stat().st_size
        for name in TABLES
        for part in _parts(home, name)
    }
    manifest = {"scale": scale, "rows": rows, "bytes": sizes}
    (home / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _read(home: Path, scale: float) -> DataSet | None:
    """The data set in a folder, or None when it is not there or not whole."""
    try:
        manifest = json.loads((home / _MANIFEST).read_text(encoding="utf-8"))
        sizes = {name: (home / name).stat().st_size for name in manifest["bytes"]}
        if manifest["scale"] != scale or sizes != manifest["bytes"]:
            return None
        rows = {name: int(manifest["rows"][name]) for name in TABLES}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return DataSet(scale, rows, {name: tuple(_parts(home, name)) for name in TABLES})


def _parts(home: Path, table: str) -> list[Path]:
    """A table's files, by number."""
    return sorted((home / table).glob("*.tbl"), key=lambda file: int(file.name.split(".")[1]))


def _lines(file: Path) -> int:
    with file.open("rb", buffering=0) as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(_CHUNK_BYTES), b""))

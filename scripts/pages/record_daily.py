"""The recording of a day with hotset, docs/images/daily.svg: ``make recording``, as root.

Real commands on this computer: a disk is a file with PostgreSQL and TPC-C on it, a second file is
the flash. What is shown is what they printed, line by line, as fast as they did; waits are cut to
a second, and the folder of the two files has a shorter name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path

from hotset.core.clock import wait_until

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/images/daily.svg"
HOTSET = str(Path(sys.executable).with_name("hotset"))
COLUMNS, PORT = 100, 54399
SHOWN_FOLDER = "/tmp/shop"  # noqa: S108 - on the picture alone
DSN = f"postgresql://postgres@127.0.0.1:{PORT}/tpcc"
WAIT_S_MAX, READING_S, TYPING_S = 1.0, 6.0, 1.2
LINE, CHARACTER, MARGIN = 18, 8.43, 16
"""Measures of the picture, in its pixels, for a font of 14."""


@dataclass
class Act:
    """Something a DBA does, and what the screen shows of it: seconds from its start, and a line."""

    title: str
    lines: list[tuple[float, str]] = field(default_factory=list)
    lasts_s: float = 0.0

    def say(self, line: str, after_s: float) -> None:
        """Show a line, or as many as it takes on this screen."""
        self.lasts_s += after_s
        for at in range(0, max(len(line), 1), COLUMNS):
            self.lines.append((self.lasts_s, line[at : at + COLUMNS]))

    def run(self, shown: str, folder: Path, head: int = 1000) -> None:
        """Run a command of hotset's, and keep what it prints.

        :param shown: lines as a user would type them; they name files in `SHOWN_FOLDER`.
        :param folder: where they are.
        :param head: keep so many lines.
        :raises subprocess.CalledProcessError: it failed.
        """
        first, *others = shown.split("\n")
        self.say(f"$ {first}", 0.3)
        for other in others:
            self.say(f"> {other}", 0.1)
        self.lasts_s += TYPING_S
        environment = os.environ | {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
        typed = shown.partition(" | ")[0].replace("\\\n", " ")
        command = [HOTSET, *typed.replace(SHOWN_FOLDER, str(folder)).split()[1:]]
        before = time.monotonic()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            for count, line in enumerate(process.stdout):
                now = time.monotonic()
                if count < head:
                    text = line.rstrip().replace(str(folder), SHOWN_FOLDER)
                    self.say(text, min(now - before, WAIT_S_MAX))
                before = now
        if process.returncode:
            sys.stderr.write("\n".join(line for _, line in self.lines) + "\n")
            raise subprocess.CalledProcessError(process.returncode, command)
        self.say("", 0.2)


def main() -> None:
    """Record, and draw."""
    with tempfile.TemporaryDirectory(prefix="hotset-recording-") as folder:
        os.environ |= {f"XDG_{kind}_HOME": f"{folder}/{kind}" for kind in ("STATE", "DATA")}
        os.environ["HOTSET_DSN"] = DSN
        acts = record(Path(folder))
    PICTURE.write_text(draw(acts), encoding="utf-8")


def record(folder: Path) -> list[Act]:
    """The three acts, on files in a folder."""
    disk, flash, mount = folder / "disk", folder / "flash", folder / "db"
    for file, size in ((disk, 1 << 30), (flash, 768 << 20)):
        file.touch()
        os.truncate(file, size)
    mount.mkdir()
    folder.chmod(0o755)
    subprocess.run(["mkfs.ext4", "-q", str(disk)], check=True)
    with mounted(disk, mount), server(mount, new=True):
        tpcc = ("--warehouses", "1", "--quiet")
        subprocess.run([HOTSET, "tpcc", "build", *tpcc], check=True, stdout=subprocess.DEVNULL)
    first = Act("1  Accelerate a disk: its data stays in place")
    first.run(
        f"hotset tier create shop --flash {SHOWN_FOLDER}/flash --origin {SHOWN_FOLDER}/disk \\\n"
        "       --kind userspace --cache 400MiB --database oltp",
        folder,
    )
    try:
        with mounted(Path("/dev/hotset/shop"), mount), server(mount):
            second = Act("2  Warm it up")
            second.run("hotset warmup run database:tpcc", folder)
            third = Act("3  Watch it, after some seconds of TPC-C")
            load = ("--warehouses", "1", "--users", "4", "--rampup", "3", "--duration", "10")
            work = [HOTSET, "tpcc", "run", *load, "--no-keep", "--quiet"]
            subprocess.run(work, check=True, stdout=subprocess.DEVNULL)
            third.run("hotset report hit-ratio --by table | head -14", folder, head=14)
            third.run("hotset tier status", folder)
    finally:
        subprocess.run([HOTSET, "tier", "detach", "shop"], check=False)
    return [first, second, third]


@contextmanager
def mounted(device: Path, where: Path) -> Iterator[None]:
    """A disk that is mounted meanwhile."""
    subprocess.run(["mount", str(device), str(where)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(where)], check=True)
        # The loop device below goes a moment later, and until then the file is in use.
        behind = ["losetup", "--noheadings", "--associated", str(device)]
        wait_until(lambda: not subprocess.run(behind, check=True, capture_output=True).stdout, 10)


@contextmanager
def server(where: Path, *, new: bool = False) -> Iterator[None]:
    """PostgreSQL with its data on a disk."""
    data, programs = where / "data", sorted(Path("/usr/lib/postgresql").iterdir())[-1] / "bin"

    def run(*command: str) -> None:
        whole = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(whole, check=True, cwd="/", stdout=subprocess.DEVNULL)

    if new:
        data.mkdir()
        shutil.chown(data, "postgres", "postgres")
        run(str(programs / "initdb"), "--auth=trust", "--pgdata", str(data))
    options = f"-p {PORT} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
    options += " -c shared_buffers=16MB"
    log = str(data / "log")
    run(str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", log, "-o", options, "start")
    try:
        if new:
            address = ("-h", "127.0.0.1", "-p", str(PORT))
            run(str(programs / "createdb"), *address, "tpcc")
        yield
    finally:
        run(str(programs / "pg_ctl"), "-D", str(data), "-w", "-m", "fast", "stop")


# The picture


def draw(acts: Sequence[Act]) -> str:
    """An SVG that shows the acts one after another, and begins again."""
    begins = [0.0]
    for act in acts:
        begins.append(begins[-1] + act.lasts_s + READING_S)
    rows = max(len(act.lines) for act in acts) + 2
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, rows * LINE + 2 * MARGIN
    styles: list[str] = []
    texts: list[str] = []
    for act, (begin, end) in zip(acts, pairwise(begins), strict=True):
        shown = [(0.0, act.title), (0.0, ""), *act.lines]
        for row, (after, line) in enumerate(shown):
            if not line:
                continue
            name = f"l{len(texts)}"
            styles.append(keyframes(name, begin + after, end, begins[-1]))
            kind = "title" if row == 0 else "command" if line[:2] in ("$ ", "> ") else "said"
            y = MARGIN + (row + 1) * LINE - 5
            last = " last" if act is acts[-1] else ""
            texts.append(
                f'<text x="{MARGIN}" y="{y}" class="{kind}{last}"'
                f' style="animation-name:{name}">{escape(line)}</text>'
            )
    return _PICTURE.format(
        width=round(width),
        height=height,
        lasts=round(begins[-1], 2),
        styles="\n".join(styles),
        texts="\n".join(texts),
    )


def keyframes(name: str, begin: float, end: float, whole: float) -> str:
    """A line that appears and disappears at its time of the whole."""
    start, stop = (round(100 * at / whole, 3) for at in (begin, end))
    stop = min(stop, 99.999)
    return f"@keyframes {name}{{0%{{opacity:0}}{start}%{{opacity:1}}{stop}%{{opacity:0}}}}"


_PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>A day with hotset: accelerate a disk, warm it up, watch it</title>
<style>
text{{font:14px ui-monospace,'DejaVu Sans Mono',Consolas,monospace;white-space:pre;fill:#d8dee9;
opacity:0;animation-duration:{lasts}s;animation-iteration-count:infinite;
animation-timing-function:step-end}}
.title{{fill:#f4a261;font-weight:bold}}
.command{{fill:#ffffff;font-weight:bold}}
@media (prefers-reduced-motion:reduce){{text{{animation:none!important}}.last{{opacity:1}}}}
{styles}
</style>
<rect width="100%" height="100%" rx="8" fill="#1b1f27"/>
{texts}
</svg>
"""


if __name__ == "__main__":
    main()

"""`hotset top` in a real terminal, over a real tier and a database."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.lab import lab as labs
from hotset.lab.backend import ModelledBackend
from hotset.tier.base import TierSpec
from tests.postgres_cluster import Cluster
from tests.pseudo_terminal import HOTSET, Terminal

MIB = 2**20
BLOCK = Bytes(65536)


@contextmanager
def modelled_tier() -> Iterator[Path]:
    """A tier between models where the lab has its own; the accelerated disk."""
    folder, local = labs.lab_folder(), Local()
    cleanup = Cleanup(folder, local)
    cleanup.owner("test")
    backend = ModelledBackend(local, local, "pcie-flash-2014", folder)
    sizes = (Bytes(number * MIB) for number in (5, 64, 16))
    try:
        origin = backend.slow_disk("nas-2014", Bytes(128 * MIB))
        spec = TierSpec("writeback", "smq", BLOCK, *sizes)
        yield Path(backend.tier(spec, origin, cleanup).prepare())
    finally:
        cleanup.undo()


@pytest.mark.lab
@pytest.mark.night
@pytest.mark.database
def test_a_live_screen_in_a_terminal(cluster: Cluster) -> None:
    base = cluster.database()
    dsn = f"host={base.host} port={base.port} user={base.user} dbname={base.dbname}"
    loud = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment = {**loud, "TERM": "xterm-256color", "HOTSET_PASSWORD": base.password}
    with modelled_tier() as device, closing(base.session()) as session, device.open("rb") as disk_:
        terminal = Terminal([str(HOTSET), "top", "0.3", "--dsn", dsn], environment, 100)

        def busy(screen: str) -> bool:
            """Keeps disk and database at work until they are on the screen."""
            os.posix_fadvise(disk_.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.pread(disk_.fileno(), 4 * MIB, 0)
            session.script("SELECT 1")
            found = re.search(r"reads ([\d,]+)/s.*transactions ([\d,]+)/s", screen, re.DOTALL)
            return bool(found and found[1] != "0" and found[2] != "0")

        first = terminal.until(busy)
        assert "lab  userspace, writeback, smq" in first
        assert re.search(r"hits +\d+\.\d % ▕.*▏ now +\d+\.\d % since start", first)
        assert re.search(r"used .* of 64 MiB +dirty", first)
        assert "\x1b[?1049h" in terminal.written, "the screen before it is kept"
        assert not terminal.echoes()
        terminal.press("s")
        terminal.until(lambda screen: "by hit ratio" in screen)
        terminal.press("?")
        terminal.until(lambda screen: "this help, and back" in screen)
        terminal.press("?")
        terminal.resize(60)
        narrow = terminal.until(
            lambda screen: "lab" in screen and max(map(len, screen.splitlines())) == 60
        )
        assert "used" in narrow
        assert terminal.end(signal.SIGINT) == 0
        assert terminal.written.rstrip().endswith("\x1b[?1049l"), "and shown again"
        assert "Traceback" not in terminal.written
        assert terminal.echoes()
        assert base.password not in terminal.written

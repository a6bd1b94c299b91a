from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hotset.core.clock import wait_for_word, wait_until


def test_what_is_ready_is_not_waited_for() -> None:
    assert wait_until(lambda: True, 0.0)


def test_it_asks_until_it_is_ready() -> None:
    answers = iter((False, 0, None, "ready"))
    assert wait_until(lambda: next(answers), 60.0, 0.0)


def test_the_limit_ends_it() -> None:
    asked = []
    assert not wait_until(lambda: asked.append(1), 0.05, 0.01)
    assert asked


def test_an_end_is_not_waited_out_but_what_it_left_counts() -> None:
    assert not wait_until(lambda: False, 1e9, ended=lambda: True)
    done: list[str] = []
    # It gets ready between the two questions, and ends.
    assert wait_until(lambda: done, 1e9, ended=lambda: done.append("ready") or True)


def test_a_word_of_a_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out:
        argv = [sys.executable, "-c", "print('now ready')"]
        with subprocess.Popen(argv, stdout=out) as process:
            assert wait_for_word(process, log, "ready", 60.0)
            assert not wait_for_word(process, log, "never", 1e9)

"""Slices of the campaigns (scripts/campaign)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import campaign
from campaign import bench, kills, lives
from campaign.systemd import Server
from hotset.core.units import Bytes
from hotset.lab.lab import LabSpec
from hotset.tier.base import TierKind
from tests.own_lab import own_lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    spec = LabSpec("uml", 2, Bytes(1024**3), Bytes(512 * 1024**2))
    with own_lab(tmp_path_factory, spec) as lab:
        yield bench.server(lab)


@pytest.mark.parametrize(
    ("kind", "verb", "ending"),
    [
        # Between the label that says so and the wipe: no boot may make the disk again.
        ("dm-cache", "detach", "power cut"),
        pytest.param("userspace", "detach", "reboot", marks=pytest.mark.night),
        # A boot that finds its metadata damaged leaves it on record as clean.
        pytest.param("userspace", "repair clean", "reboot", marks=pytest.mark.night),
    ],
)
def test_nothing_is_lost_by_a_kill(
    server: Server, kind: TierKind, verb: bench.Verb, ending: kills.Ending
) -> None:
    (outcome,) = kills.run(server, [kind], [verb], [ending], lambda steps: [steps * 2 // 5], print)
    assert len(outcome.tried) == 1
    assert outcome.failures == []


def test_a_life_is_not_lost_where_its_cache_was_never_taken_down(server: Server) -> None:
    """Made again, and a power cut: without hints the tools could not read what the cache holds."""
    (life,) = lives.run(server, ["dm-cache"], [3], print)
    assert "detach, killed" in life.line()
    assert life.failure is None, life.line()
    assert life.end is not None
    assert "Both cannot be kept" in life.end


def live_engines(*words: str) -> subprocess.CompletedProcess[str]:
    """In a process of their own, which takes itself a mount namespace."""
    argv = [sys.executable, "-m", "campaign", "engine", *words]
    scripts = Path(campaign.__path__[0]).parent
    env = {**os.environ, "PYTHONPATH": str(scripts)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600, check=False)


def test_no_life_of_an_engine_over_drives_that_lose_data_is_lost() -> None:
    done = live_engines("--faults", "all", "--lives", "2", "--first", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "together: 2 lives" in done.stdout
    assert "0 refused, 0 lost" in done.stdout


def test_what_a_drive_has_lost_without_the_engines_knowledge_is_noticed() -> None:
    done = live_engines("--faults", "drives", "--lives", "6", "--first", "1", "--self-test")
    assert done.returncode == 1, done.stdout + done.stderr
    # A wrong sector, or an engine that ended of what it read.
    assert "WrongError: " in done.stdout
    # Drives that lose so much may have an end refused before that.
    assert re.search(r"^together: .* refused, 1 lost$", done.stdout, re.MULTILINE), done.stdout

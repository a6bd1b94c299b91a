"""A device that was suspended for a moment goes on, whatever becomes of whoever asked for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hotset.block import programs
from hotset.core.clock import wait_until
from hotset.core.machines import local
from hotset.core.machines.base import CommandTimeoutError
from hotset.core.machines.local import Local
from hotset.tier import devices
from hotset.tier.dmcache import tier as dmcache
from hotset.tier.dmcache.tier import DmCache
from tests.fake_machine import place
from tests.support.dm_cache_lines import MIB, SPEC

# Takes its time for what waits for I/O under way, longer than a command that is ended may take to
# tidy up.
DMSETUP = """\
#!/bin/sh
cd {state}
case $1 in
    table) echo '0 8 linear /dev/x 0' ;;
    reload) cat > "$2.new" ;;
    suspend) touch begun; sleep 2; touch "$2.suspended" ;;
    resume)
        [ -e begun ] || {{ touch begun; sleep 2; }}
        rm -f "$2.suspended"; touch "$2.resumed"; [ ! -e "$2.new" ] || mv "$2.new" "$2.table" ;;
esac
"""
SLOW_DD = """\
#!/bin/sh
sleep 2
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a stand-in of the device mapper keeps: the tables, and who is suspended."""
    programs, kept = tmp_path / "bin", tmp_path / "state"
    for folder in (programs, kept):
        folder.mkdir()
    for name, text in (("dmsetup", DMSETUP.format(state=kept)), ("dd", SLOW_DD)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return kept


Doing = Callable[[DmCache], object]


def reload(tier: DmCache) -> None:
    tier.perform("reload")


def follow_cache(tier: DmCache) -> None:
    tier.follow_cache()


def copy(tier: DmCache) -> None:
    tier.slots()


@pytest.mark.parametrize("doing", [reload, follow_cache, copy])
def test_what_is_interrupted_is_not_left_suspended(
    doing: Doing, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_TIDY_UP_S", 0.5)
    monkeypatch.setattr(devices, "_SWAP_LIMIT_S", 1.0)
    monkeypatch.setattr(dmcache, "_TOOL_TIMEOUT_S", 1.0)
    monkeypatch.setattr(programs, "boot", lambda _: str(programs.find_boot()))
    origin = state / "origin"
    origin.write_bytes(bytes(MIB))
    with pytest.raises(CommandTimeoutError):
        doing(DmCache(Local(), SPEC, place(SPEC, str(origin))))

    def done() -> bool:
        has_new = doing is copy or (state / "hotset-data.table").exists()
        resumed, suspended = (list(state.glob(f"*.{one}")) for one in ("resumed", "suspended"))
        return has_new and bool(resumed) and not suspended

    assert wait_until(done, 60)

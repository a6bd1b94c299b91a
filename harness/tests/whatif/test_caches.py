"""Traces, curves and simulations as operations, by the real flashdev."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hotset.block.programs import RefusedError
from hotset.core.clock import wait_until
from hotset.core.errors import ConflictError, RequestError
from hotset.core.machines.base import CommandError
from hotset.core.machines.local import Local
from hotset.core.operation import Context
from hotset.core.paths import state_dir
from hotset.core.record import Result
from hotset.core.units import Bytes
from hotset.operations import table
from hotset.reports.archive import Archive
from hotset.reports.model.document import RunDocument
from hotset.whatif import caches, workers
from hotset.whatif.caches import Cache, Outcome
from hotset.whatif.commands import models
from hotset.whatif.traffic import CacheKind

BLOCK = 8192
ROOT = Path(__file__).resolve().parents[3]


def asked(name: str, **values: Any) -> Result:  # noqa: ANN401 - JSON
    found = table.find(name)
    return found.function(found.parse(values), Context())


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """20,000 requests, skewed over 2,000 blocks, a third of them writes."""
    dice = random.Random(3)
    blocks = [int(dice.random() ** 3 * 2_000) for _ in range(20_000)]
    lines = [
        f"{number / 1000:.6f} {'RRW'[number % 3]} {block * BLOCK} {BLOCK}\n"
        for number, block in enumerate(blocks)
    ]
    file = tmp_path / "trace.txt"
    file.write_text("".join(lines))
    return file


def lru_hits(trace: Path, slots: int) -> int:
    """As one would write it without a thought of speed."""
    cached: dict[int, None] = {}
    hits = 0
    for line in trace.read_text().splitlines():
        block = int(line.split()[2]) // BLOCK
        hits += block in cached
        cached.pop(block, None)
        cached[block] = None
        if len(cached) > slots:
            del cached[next(iter(cached))]
    return hits


def test_a_trace_is_converted_and_shown(trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "trace.bin"
    converted = asked("whatif trace convert", recording=str(trace), output=str(output)).document()
    shown = asked("whatif trace show", trace=str(output)).document()
    assert converted == shown
    assert (shown["requests"], shown["writes"], shown["timed"]) == (20_000, 6_666, True)
    assert shown["seconds"] == pytest.approx(19.999)
    assert output.stat().st_size < trace.stat().st_size / 2
    output.write_bytes(output.read_bytes()[:-1])
    with pytest.raises(RefusedError, match=r"byte \d+, after 20000 requests"):
        asked("whatif trace show", trace=str(output))


def test_what_cannot_be_converted_leaves_nothing_behind(tmp_path: Path) -> None:
    recording, output = tmp_path / "msr.csv", tmp_path / "trace.bin"
    recording.write_text("1,h,0,Read,0,512,1\n2,h,1,Read,0,512,1\n")
    words = {"recording": str(recording), "output": str(output), "recorder": "msr"}
    with pytest.raises(RefusedError, match=r"line 2.*--of-disk"):
        asked("whatif trace convert", **words)
    assert not output.exists()
    (link := tmp_path / "link").symlink_to(output)
    with pytest.raises(RefusedError, match=r"line 2.*--of-disk"):
        asked("whatif trace convert", **{**words, "output": str(link)})
    assert link.is_symlink()
    assert output.read_bytes() == b""
    assert asked("whatif trace convert", **words, of_disk="1").document()["requests"] == 1


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("whatif trace convert", {"recording": "/dev/null"}),
        ("whatif trace tpcc", {"warehouses": 1, "seconds": 1.0}),
        ("whatif trace tpch", {"scale": 0.01}),
        ("whatif record", {"device": "/dev/null", "minutes": 0.01}),
    ],
)
def test_a_file_that_holds_something_is_not_overwritten_unasked(
    operation: str, words: dict[str, Any], tmp_path: Path
) -> None:
    """Whatever it was: `New-HotsetTpccTrace FILE` took any file for its own."""
    output = tmp_path / "thesis.txt"
    output.write_text("two years of work")
    with pytest.raises(ConflictError, match="exists"):
        asked(operation, **words, output=str(output))
    assert output.read_text() == "two years of work"
    if operation == "whatif trace tpcc":
        asked(operation, **words, output=str(output), force=True)
        assert output.read_bytes()[:3] != b"two"


def test_the_curve_is_what_a_list_hits(trace: Path) -> None:
    found = asked("whatif mrc", trace=str(trace), block="8KiB", cache=["8MiB", "800KiB"])
    points = found.document()["points"]
    assert [one["cache_bytes"] for one in points] == [800 * 1024, 8 * 1024**2]
    for one in points:
        hits = lru_hits(trace, one["cache_bytes"] // BLOCK)
        assert one["hit_ratio"] == pytest.approx(hits / 20_000)
        assert one["hit_ratio_low"] == one["hit_ratio"] == one["hit_ratio_high"]


def test_a_sample_says_how_far_it_may_be_off(trace: Path) -> None:
    exact = asked("whatif mrc", trace=str(trace), block="8KiB", cache=["4MiB"]).document()
    sampled = asked("whatif mrc", trace=str(trace), block="8KiB", cache=["4MiB"], sample=0.25)
    (truth,), (found,) = exact["points"], sampled.document()["points"]
    assert found["hit_ratio_low"] < truth["hit_ratio"] < found["hit_ratio_high"]
    assert found["hit_ratio"] == pytest.approx(truth["hit_ratio"], abs=0.08)
    assert json.loads(json.dumps(sampled.document()))["sampled_share"] == 0.25


def test_how_far_off_a_policy_is_known_to_be_is_said_beside_it(trace: Path) -> None:
    def said(*policies: str) -> str:
        console = Console(file=StringIO(), width=200)
        asked("whatif simulate", trace=str(trace), policy=[*policies], cache=["4MiB"]).show(console)
        assert isinstance(console.file, StringIO)
        return console.file.getvalue()

    assert "the kernel's" not in said("hotset")
    both = said("smq", "bcache")
    assert "smq: the kernel's" in both
    assert "bcache: the kernel's" in both


def test_every_policy_is_simulated_with_every_size(trace: Path) -> None:
    policies = [
        "lru",
        "sieve",
        "rates",
        "bcache",
        "bound",
        "smq",
    ]
    sizes = ["4MiB", "8MiB"]
    found = asked("whatif simulate", trace=str(trace), policy=policies, cache=sizes, block=["8KiB"])
    rows = found.document()["caches"]
    assert [(row["policy"], row["cache_bytes"]) for row in rows] == [
        (policy, size * 1024**2) for policy in policies for size in (4, 8)
    ]
    assert rows[0]["hits"] == lru_hits(trace, 512)
    best = max(row["hit_ratio"] for row in rows[:-4])
    assert {row["policy"] for row in rows if row["hit_ratio"] >= best} & {"bound"}
    assert all(row["hits"] + row["misses"] == row["requests"] == 20_000 for row in rows)
    assert "bound" in found.csv()


def test_a_sweep_that_was_killed_goes_on(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [Cache("lru", size * BLOCK, BLOCK, "writeback") for size in (100, 200, 300)]
    real, done = caches.simulate, []

    def sweep() -> list[tuple[Cache, Outcome]]:
        with workers.Cores(Local(), 1) as cores:
            return caches.sweep(cores, str(trace), wanted, [], lambda *_: None)

    def dies(*words: Any, **more: Any) -> Outcome:  # noqa: ANN401 - whatever is given
        done.append(words[2])
        if len(done) == 2:
            raise KeyboardInterrupt
        return real(*words, **more)

    monkeypatch.setattr(workers, "simulate", dies)
    with pytest.raises(KeyboardInterrupt):
        sweep()
    (kept,) = (state_dir() / "whatif").iterdir()
    # What a kill cuts short is no outcome.
    kept.write_text(kept.read_text() + '{"cache": {"policy"')
    found = sweep()
    assert [cache for cache, _ in found] == wanted
    assert done.count(wanted[0]) == 1, "it was known"
    assert [outcome.hits for _, outcome in found] == [lru_hits(trace, n) for n in (100, 200, 300)]
    assert not list((state_dir() / "whatif").iterdir())


def test_what_cannot_be_simulated_is_refused(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="whole blocks"):
        asked("whatif simulate", trace=str(trace), cache=["1000KiB"], block=["64KiB"])
    with pytest.raises(RefusedError, match="give a smaller one"):
        asked("whatif simulate", trace=str(trace), cache=["1GiB"])
    log = tmp_path / "log"
    log.write_text("fio version 2 iolog\n/f add\n/f read 0 4096\n/f read 4194304 4096\n")
    untimed = str(tmp_path / "untimed")
    asked("whatif trace convert", recording=str(log), output=untimed, recorder="iolog")
    with pytest.raises(RefusedError, match="goes by time"):
        asked("whatif simulate", trace=untimed, cache=["1MiB"], policy=["smq"])
    lru = asked("whatif simulate", trace=untimed, cache=["1MiB"], policy=["lru"])
    assert lru.document()["caches"][0]["misses"] == 2


def test_tpcc_and_tpch_are_traced_without_a_database(tmp_path: Path) -> None:
    output = str(tmp_path / "tpcc.trace")
    words = {"warehouses": 2, "output": output, "buffer": "16MiB", "tpm": 6000.0, "seconds": 20.0}
    made = asked("whatif trace tpcc", **words).document()
    assert made["seconds"] < 20.1
    assert 0 < made["writes"] < made["requests"]
    # Some 200 MB and what has grown, of which 2,000 transactions touch a part.
    assert 150e6 < made["end"] < 250e6
    assert asked("whatif trace show", trace=output).document()["requests"] == made["requests"]
    scans = {"scale": 0.01, "output": str(tmp_path / "tpch.trace"), "buffer": "1GiB"}
    assert asked("whatif trace tpch", **scans).document()["writes"] == 0


LOAD = "tpcc:warehouses=2,buffer=16MiB,tpm=6000,seconds=3"


def test_a_load_needs_no_trace() -> None:
    """Its requests are made as they are read, however many they are."""
    curve = asked("whatif mrc", trace=LOAD, block="8KiB", cache=["4MiB", "64MiB"])
    small, large = curve.document()["points"]
    assert 0 < small["hit_ratio"] < large["hit_ratio"]
    found = asked("whatif simulate", trace=LOAD, policy=["lru"], cache=["4MiB"], block=["8KiB"])
    (row,) = found.document()["caches"]
    assert row["hit_ratio"] == pytest.approx(small["hit_ratio"])


def test_a_load_that_is_none_is_refused() -> None:
    with pytest.raises(RefusedError, match="0 is not in"):
        asked("whatif mrc", trace="tpcc:warehouses=0")


def test_how_far_a_pass_is_shows_when_it_ends() -> None:
    told: list[tuple[int, float | None]] = []
    load = "tpcc:warehouses=20,buffer=16MiB,tpm=60000,seconds=60"
    caches.curve(
        Local(), load, Bytes(8192), 1.0, (), lambda done, share: told.append((done, share))
    )
    shares = [share for _, share in told if share is not None]
    assert len(shares) == len(told), "its seconds are known"
    assert shares == sorted(shares)
    assert all(0 < share <= 1 for share in shares)


def test_the_smallest_cache_that_is_nearly_as_good_is_advised(trace: Path) -> None:
    words = {"trace": str(trace), "block": "8KiB", "price": 0.5}
    found = asked("whatif advise", **words).document()
    best, sizes = found["recommended"], found["sizes"]
    smaller = [one for one in sizes if one["cache_bytes"] < best["cache_bytes"]]
    assert best["share"] >= 0.95 > max(one["share"] for one in smaller)
    assert found["least_bytes"] <= best["cache_bytes"] == found["most_bytes"]
    assert best["price"] == pytest.approx(0.5 * best["cache_bytes"] / 1024**3)
    assert best["nopm"] is None
    wear = found["wear"]
    days = wear["flash_bytes_a_day"] / best["cache_bytes"]
    assert wear["drive_writes_a_day"] == pytest.approx(days, rel=1e-6)
    through = asked("whatif advise", **words, mode="writethrough").document()["wear"]
    assert wear["origin_writes_share"] < through["origin_writes_share"] == 1.0
    less = asked("whatif advise", **words, share=0.5).document()["recommended"]
    assert less["cache_bytes"] < best["cache_bytes"]


def test_advice_by_nopm_follows_the_runs_prediction(trace: Path) -> None:
    published = ROOT / "reports/published/20261121-220932-demo/result.json"
    document = RunDocument.model_validate_json(published.read_text())
    Archive.default().new("demo", document.started_at)
    Archive.default().save(document)
    words = {"trace": str(trace), "block": "8KiB", "run": document.run}
    found = asked("whatif advise", **words).document()
    ratios = [one["hit_ratio"] for one in found["sizes"]]
    # The run's cache was smq's, with other blocks; advice is on the policy that was asked for.
    cache = CacheKind("hotset", "writeback", 8192)
    predicted = models.predict_run(document.run, models.SetUp(), [*ratios, 1.0], cache)
    for name in ("nopm", "nopm_low", "nopm_high"):
        assert [one[name] for one in found["sizes"]] == [
            getattr(one, name) for one in predicted.lines[:-1]
        ]
    largest = found["sizes"][-1]
    assert largest["share"] == pytest.approx(largest["nopm"] / predicted.lines[-1].nopm)
    assert [one["kind"] for one in found["doubts"]][:1] == ["hit ratio"]
    said = found_text(asked("whatif advise", **words))
    assert "from" in said
    assert "another hit ratio (policy and block size as well)" in said
    own = asked("whatif predict", run=document.run, hit_ratio=[0.5]).document()
    assert [one["kind"] for one in own["doubts"]] == ["hit ratio"]


def found_text(result: Result) -> str:
    """As it is shown, on lines that are not broken."""
    shown = StringIO()
    result.show(Console(width=1000, file=shown))
    return shown.getvalue()


def test_a_trace_without_times_gives_no_advice(tmp_path: Path) -> None:
    untimed = tmp_path / "log"
    untimed.write_text("fio version 2 iolog\n/f read 0 4096\n")
    output = str(tmp_path / "trace")
    asked("whatif trace convert", recording=str(untimed), output=output, recorder="iolog")
    with pytest.raises(RequestError, match="no times"):
        asked("whatif advise", trace=output)


def test_what_a_converters_message_names_is_an_option_of_the_command() -> None:
    """Once --disk and --id-bytes, which no command of hotset's has."""
    sources = ROOT.glob("cache-layer/crates/block-trace/src/**/*.rs")
    named = {
        option
        for source in sources
        for line in source.read_text().splitlines()
        if not line.lstrip().startswith("//")
        for option in re.findall(r"--([a-z][a-z-]+)", line)
    }
    options = {
        field.replace("_", "-")
        for command in ("whatif trace convert", "whatif mrc")
        for field in table.find(command).request.model_fields
    }
    assert named
    assert named <= options


def test_only_a_block_device_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no block device"):
        asked("whatif record", device=str(tmp_path), output=str(tmp_path / "trace"), minutes=0.01)
    assert not (tmp_path / "trace").exists()
    with pytest.raises(RequestError, match="no folder"):
        asked("whatif record", device="/dev/null", output=str(tmp_path / "no" / "trace"))


@contextmanager
def traced_disk(tmp_path: Path) -> Iterator[str]:
    """A loop device, on a kernel that traces."""
    local, image = Local(), tmp_path / "image"
    image.write_bytes(bytes(4 << 20))
    found = local.run(["losetup", "-f", "--show", str(image)], check=False)
    if found.rc != 0:
        pytest.skip("no loop devices here")
    mounted = Path("/sys/kernel/tracing/instances").is_dir()
    try:
        yield found.stdout.strip()
    except CommandError as failed:
        if "mounting" in str(failed) or "hotset-record" in str(failed):
            pytest.skip("this kernel does not trace")
        raise
    finally:
        local.run(["losetup", "-d", found.stdout.strip()])
        if not mounted:
            local.run(["umount", "/sys/kernel/tracing"], check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="tracing takes root")
def test_a_devices_requests_are_recorded(tmp_path: Path) -> None:
    """By this computer's own kernel, of a loop device."""
    with traced_disk(tmp_path) as device, ThreadPoolExecutor(1) as pool:
        words = {"device": device, "output": str(tmp_path / "trace"), "minutes": 0.1}
        recording = pool.submit(asked, "whatif record", **words)
        read = ["dd", f"if={device}", "of=/dev/null", "bs=8k", "count=50", "iflag=direct"]
        while not recording.done():
            Local().run(read)
        found_trace = recording.result().document()
    assert found_trace["requests"] >= 50
    assert found_trace["writes"] == 0
    # Others look at a new device, too: udev, and whoever lists what the disks hold.
    assert found_trace["read_bytes"] >= 50 * 8192
    assert 50 * 8192 <= found_trace["end"] <= 4 << 20
    assert not list(Path("/sys/kernel/tracing/instances").glob("hotset-record-*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="tracing takes root")
def test_ctrl_c_keeps_what_was_recorded_and_an_idle_disk_shows_progress(tmp_path: Path) -> None:
    """It recorded for 15 minutes in silence, and Ctrl-C left nothing."""
    trace, said = tmp_path / "trace", tmp_path / "said"
    hotset = Path(sys.executable).with_name("hotset")
    with traced_disk(tmp_path) as device, said.open("w") as errors:
        argv = [str(hotset), "whatif", "record", device, "--output", str(trace)]
        words = {**os.environ, "HOTSET_PROGRESS": "json"}
        recording = subprocess.Popen(argv, env=words, stderr=errors, stdout=subprocess.DEVNULL)
        wait_until(lambda: "s to go" in said.read_text(), 60, ended=recording.poll)
        if "hotset-record" in said.read_text() or "mounting" in said.read_text():
            pytest.skip("this kernel does not trace")
        read = ["dd", f"if={device}", "of=/dev/null", "bs=8k", "count=50", "iflag=direct"]
        Local().run(read)
        recording.send_signal(signal.SIGINT)
        assert recording.wait(timeout=60) == 130, said.read_text()
    assert "has what was recorded until then" in said.read_text()
    assert asked("whatif trace show", trace=str(trace)).document()["requests"] >= 50
    assert not Path(f"{trace}.part").exists()

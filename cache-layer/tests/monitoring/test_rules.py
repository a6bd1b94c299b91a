"""The rules for Prometheus ask for nothing that hotset does not write, have the limits that `tier
health` has, and fire when they are to: where promtool is installed, it is asked."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import PurePosixPath

import pytest

from hotset.block.condition import thin_pools, wear
from hotset.block.condition.thin_pools import ThinPool
from hotset.core import errors
from hotset.core.machines.local import Local
from hotset.core.paths import repository_file
from hotset.core.units import Blocks, Bytes
from hotset.disk import flash_devices
from hotset.disk.boot import schedules
from hotset.disk.flash_devices import AttachedDisk
from hotset.health import thresholds as limits
from hotset.monitoring import conditions, metrics
from hotset.operations import table
from hotset.tier.base import Report
from hotset.tier.division import Division, Part
from tests.monitoring.test_grafana import written as counters_written
from tests.support.hit_counters import DISK, FLASH

FOLDER = repository_file("reports/grafana")
TEXT = (FOLDER / "hotset-rules.yml").read_text()
NAME = re.compile(r"\bhotset_[a-z_]+")
RECORDED = re.compile(r"record: (\S+)")
PARTS = re.split(r"^      - alert: ", TEXT, flags=re.MULTILINE)
ALERTS = {part.split("\n", 1)[0]: part for part in PARTS[1:]}


def expression(alert: str) -> str:
    found = re.search(r"expr: (.*?)\n        (?:for|labels):", ALERTS[alert], re.DOTALL)
    assert found, alert
    return found[1]


class Telling:
    """A tier that tells all, with a quarter of what is pinned not cached."""

    def report(self) -> Report:
        return Report("degraded", None, metadata=0.25)

    def is_active(self) -> bool:
        return True

    def divisible(self) -> Telling:
        return self

    def division(self) -> Division:
        four, three = Blocks(4), Blocks(3)
        pinned, none = Part("", four, three, four, four), Part("", *(Blocks(0),) * 4)
        return Division(Bytes(4096), Blocks(9), Blocks(9), pinned, none, (), Blocks(0))


def exposed(monkeypatch: pytest.MonkeyPatch, tier: object) -> str:
    attached = AttachedDisk(Local(), FLASH, DISK)
    monkeypatch.setattr(AttachedDisk, "tier", property(lambda _: tier))
    monkeypatch.setattr(flash_devices, "list_disks", lambda _: [attached])
    return metrics.text(conditions.families(conditions.inspect(Local())))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Every metric of a disk that tells all, with its labels, as it is printed."""
    drive, pool = wear.Wear(PurePosixPath("/dev/sda"), 0.9), ThinPool("p", 0.5, 0.1)
    nightly = schedules.Schedule("nightly", "07:00", "failed", "", "")
    monkeypatch.setattr(wear, "measure", lambda _, __: [drive])
    monkeypatch.setattr(thin_pools, "measure", lambda _, __: [pool])
    monkeypatch.setattr(schedules, "list_units", lambda _: [])
    monkeypatch.setattr(schedules, "of_disk", lambda _, __: [schedules.Unit("a", "")])
    monkeypatch.setattr(schedules, "rows", lambda _, __: [nightly])
    runs = {"nightly": schedules.Run(9.0, waits=True)}
    monkeypatch.setattr(schedules, "last_runs", lambda _, __: runs)
    found = counters_written()
    for line in exposed(monkeypatch, Telling()).splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', rest))
    return found


def test_every_metric_of_a_rule_is_written_with_the_labels_that_it_asks_for(
    written: dict[str, set[str]],
) -> None:
    assert len(ALERTS) > 10
    recorded = NAME.findall("".join(PARTS[0].split("record:")[1:]))
    assert set(recorded) <= set(written)
    for alert, text in ALERTS.items():
        asked = NAME.findall(expression(alert))
        assert set(asked) <= set(written), alert
        labels = [written[name] for name in asked] or [written["hotset_cache_hits_total"]]
        told = set.intersection(*labels)
        used = set(re.findall(r"\$labels\.(\w+)", text))
        assert used <= told, alert
        for name, chosen in re.findall(r"(hotset_\w+)\{([^}]*)\}", expression(alert)):
            assert set(re.findall(r"(\w+)=", chosen)) <= written[name]


def test_every_condition_has_a_rule() -> None:
    asked = set(NAME.findall("\n".join(map(expression, ALERTS))))
    assert set(conditions._FAMILIES) <= asked


def test_what_is_recorded_is_used_under_its_name() -> None:
    used = set(re.findall(r"hotset:\w+(?::\w+)*", "\n".join(map(expression, ALERTS))))
    assert used == set(RECORDED.findall(TEXT))


@pytest.mark.parametrize(
    ("alert", "figures"),
    [
        ("HotsetHitRatioFell", (limits.RATIO_DROP, limits.DAYS, limits.DAY_REQUESTS_MIN)),
        ("HotsetDirtyStays", (limits.DIRTY_SHARE, limits.DIRTY_RISEN)),
        ("HotsetMetadataNearlyFull", (limits.METADATA_FULL,)),
        ("HotsetThinPoolNearlyFull", (limits.POOL_FULL,)),
        ("HotsetFlashWorn", (limits.WEAR_HIGH,)),
        ("HotsetWarmupLate", (limits.WARMUP_LATE_S,)),
    ],
)
def test_a_rule_has_the_limits_of_tier_health(alert: str, figures: tuple[float, ...]) -> None:
    found = {float(one) for one in re.findall(r">= ([0-9.]+)", expression(alert))}
    assert found == set(map(float, figures))


def test_the_drop_has_the_bound_of_tier_health() -> None:
    """As far below the lowest day as that is below the highest."""
    found = " ".join(expression("HotsetHitRatioFell").split())
    days = "(hotset:hit_ratio:day[7d:1d] offset 1d)"
    assert f"<= 2 * min_over_time{days} - max_over_time{days}" in found


def test_each_alert_says_what_it_is_how_grave_and_what_to_type() -> None:
    for alert, text in ALERTS.items():
        assert re.search(r"labels: \{severity: (warning|critical)\}", text), alert
        assert "summary: '" in text
        found = re.search(r"command: 'hotset ([^'{]+?)(?: (?:--disk )?\{\{.*)?'", text)
        assert found, alert
        assert table.find(found[1].strip()), alert
        if "warmup refresh" in found[1]:
            assert "--disk {{" in text
    assert errors.command_line("warmup refresh", {"disk": "x"}).endswith("--disk x")


def test_a_disk_tells_its_condition_and_nothing_that_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Quiet(Telling):
        def divisible(self) -> None:  # type: ignore[override]
            return None

    text = exposed(monkeypatch, Quiet())
    assert 'hotset_tier_state{disk="erp",tier="dm-cache",state="degraded"} 1.0' in text
    assert 'hotset_tier_state{disk="erp",tier="dm-cache",state="active"} 0.0' in text
    assert 'hotset_cache_metadata_used_ratio{disk="erp",tier="dm-cache"} 0.25' in text
    # /dev/flash is not there: no wear is told, and none of 0.
    assert "wear" not in text
    assert "pinned" not in text


@pytest.mark.parametrize(
    "words", [("check", "rules", "hotset-rules.yml"), ("test", "rules", "hotset-rules.test.yml")]
)
def test_promtool_finds_that_they_fire_when_they_are_to(words: tuple[str, ...]) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (apt-get install prometheus)")
    done = subprocess.run(
        [program, *words], check=False, cwd=FOLDER, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""The campaign of predictions: its set-ups can be run, in slices, and it goes on where it was."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from hotset.core.paths import read_json_lines
from hotset.experiment.file.spec import read
from hotset.whatif.traffic import read_simulations
from measure.cases import predictions as bench
from measure.cases.predictions import Campaign

ROOT = Path(__file__).resolve().parents[3]


def called(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [str(ROOT / "scripts/bench.sh"), "predictions", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_every_set_up_is_an_experiment() -> None:
    setups = bench.campaign()
    assert len(setups) == 4 * 5 * 2 * 3 == len(set(setups.values()))
    assert set(bench.POLICIES) == set(read_simulations())
    seen = set()
    for sets in setups.values():
        found = read(ROOT / bench.EXPERIMENT, ["tier.kind=userspace", *sets])
        assert found.tier.policy in bench.POLICIES
        seen.add((found.tier.policy, int(found.tier.cache), str(found.storage.model)))
    assert len(seen) == 40
    for part in range(8):
        names = [*setups][part::8]
        assert {name.partition(",")[0] for name in names} == set(bench.POLICIES)
        assert {name.split(", ")[2] for name in names} == set(bench.STORAGES)


@pytest.mark.night
def test_a_slice_of_the_plan_can_be_run(tmp_path: Path) -> None:
    results = tmp_path / "results"
    found = called("--small-caches", str(results), "--slice", "7/120", "--plan")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == "2 set-ups can be run\n"
    assert not results.exists()


@pytest.mark.parametrize("slice_", ["4/3", "x/2"])
def test_what_is_no_slice(slice_: str) -> None:
    found = called("--small-caches", "x", "--slice", slice_, "--plan")
    assert found.returncode == 2
    assert "is not N/M" in found.stderr


@pytest.mark.night
def test_a_slice_needs_its_campaign_and_the_help_says_how_long() -> None:
    assert "--small-caches" in called("--slice", "1/2", "--plan").stderr
    assert "8 hours" in called("--help").stdout


class Made:
    """In place of ``hotset``: each run takes its number; some fail."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.ran = fails, []  # type: ignore[var-annotated]

    def __call__(self, *words: str) -> dict[str, Any]:
        if words[:2] == ("experiment", "run"):
            sets = " ".join(words)
            if self.fails and self.fails in sets:
                raise subprocess.CalledProcessError(1, list(words), stderr="no room")
            self.ran.append(sets)
            return {"run": f"r{len(self.ran)}"}
        arm: dict[str, Any] = dict.fromkeys(
            ("predicted_nopm", "predicted_nopm_low", "predicted_nopm_high", "measured_nopm"), 1.0
        )
        arm |= {"arm": "accelerated", "users": 4, "hit_ratio": 0.5, "error": 0.0, "by": words[4]}
        return {"arms": [arm]}


def test_slices_make_all_and_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, every = tmp_path / "results", bench.campaign()
    made = Made()
    monkeypatch.setattr(bench, "hotset", made)
    for part in (3, 1, 2, 2):
        setups = dict([*every.items()][part - 1 :: 3])
        assert Campaign(results, "a computer").run(setups, None) == []
    assert len(made.ran) == 1 + len(every), "what is learned from, once, and each set-up once"
    found = list(read_json_lines(results))
    assert {one["setup"] for one in found if "setup" in one} == set(every)
    assert {arm["by"] for one in found for arm in one.get("arms", ())} == {"r1"}


def test_what_was_cut_short_or_failed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, setups = tmp_path / "results", dict([*bench.campaign().items()][:4])
    monkeypatch.setattr(bench, "hotset", Made(fails='tier.policy="arc"'))
    assert len(Campaign(results, "a computer").run(setups, "taught")) == 1
    kept = results.read_text().splitlines()
    results.write_text("\n".join(kept)[:-20])
    again = Made()
    monkeypatch.setattr(bench, "hotset", again)
    assert Campaign(results, "a computer").run(setups, None) == []
    assert len(again.ran) == 2, "the one that failed, and the one whose line was cut"
    done = [one["setup"] for one in read_json_lines(results) if "setup" in one]
    assert sorted(done) == sorted(setups)
    with pytest.raises(SystemExit, match="was learned from taught, not from other"):
        Campaign(results, "a computer").run(setups, "other")

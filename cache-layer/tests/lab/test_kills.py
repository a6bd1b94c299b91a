"""A slice of the kill campaign (scripts/kill_campaign.py): each verb, killed at one step, by the
power as well as alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotset.cachelayer.common.units import Bytes
from hotset.cachelayer.testbed import kill_campaign
from hotset.cachelayer.testbed.lab import LabSpec
from hotset.cachelayer.testbed.machines.uml import Uml
from hotset.cachelayer.tiers.base import TierKind
from tests.own_lab import own_lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uml]:
    spec = LabSpec("uml", 2, Bytes(1024**3), Bytes(512 * 1024**2))
    with own_lab(tmp_path_factory, spec) as lab:
        assert isinstance(lab.machine, Uml)
        yield lab.machine


@pytest.mark.parametrize(
    ("kind", "verb", "ending"),
    [
        ("dm-cache", "detach", "kill"),
        ("dm-cache", "shrink", "power cut"),
        ("dm-cache", "repair", "power cut"),
        ("bcache", "create", "power cut"),
        ("bcache", "grow", "kill"),
        ("bcache", "repair clean", "kill"),
        ("dm-cache", "grow", "kill within"),
        ("bcache", "detach", "power cut within"),
    ],
)
def test_nothing_is_lost_by_a_kill(
    machine: Uml, kind: TierKind, verb: kill_campaign.Verb, ending: kill_campaign.Ending
) -> None:
    (outcome,) = kill_campaign.run(
        machine, [kind], [verb], [ending], lambda steps: [steps * 2 // 3], print
    )
    assert len(outcome.tried) == 1
    assert outcome.failures == []


@pytest.mark.parametrize(
    ("kind", "verb", "ending"),
    [("dm-cache", "set", "power cut"), ("bcache", "grow", "kill")],
)
def test_whoever_writes_meanwhile_finds_every_record(
    machine: Uml, kind: TierKind, verb: kill_campaign.Verb, ending: kill_campaign.Ending
) -> None:
    (outcome,) = kill_campaign.run(
        machine, [kind], [verb], [ending], lambda steps: [steps * 2 // 3], print, writers=True
    )
    assert len(outcome.tried) == 1
    assert outcome.records
    assert outcome.failures == []

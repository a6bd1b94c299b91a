"""What the pages show of the machine's cards, disks and block devices; nothing is changed here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from hotset.cachelayer import card as cards
from hotset.cachelayer import devices, lifecycle, machines
from hotset.cachelayer.card import Card
from hotset.cachelayer.devices import Device
from hotset.cachelayer.machine import Machine
from hotset.harness import tierview
from hotset.harness.cli.codes import code_of

T = TypeVar("T")


class GroundError(Exception):
    """The machine cannot be looked at; the message says why."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The cards that stand on a machine, and its block devices."""

    cards: tuple[Card, ...]
    devices: tuple[Device, ...]

    def card_on(self, path: str) -> Card | None:
        """The card that this device is, if it is one."""
        device = self.device(path)
        names = {path} if device is None else {path, *map(str, (device.node, *device.by_id))}
        return next((card for card in self.cards if str(card.flash) in names), None)

    def device(self, path: str) -> Device | None:
        """A device by any of its names."""
        return next(
            (one for one in self.devices if path in map(str, (one.path, one.node, *one.by_id))),
            None,
        )


async def ground(machine: str) -> Ground:
    """:raises GroundError: as the message says."""
    return await _there(machine, lambda there: Ground(
        tuple(cards.standing(there)), tuple(devices.every(there))))  # fmt: skip


async def standing(machine: str) -> list[Card]:
    """The machine's cards. Raises GroundError."""
    return await _there(machine, cards.standing)


async def disks(machine: str) -> list[dict[str, Any]]:
    """The accelerated disks as ``hotset tier status`` has them. Raises GroundError."""
    return await _there(machine, lambda there: [
        tierview.status_row(lifecycle.look(there, *pair)) for pair in cards.pairs(there)
    ])  # fmt: skip


async def _there(machine: str, look: Callable[[Machine], T]) -> T:
    def looked() -> T:
        with machines.opened(machine) as there:
            return look(there)

    try:
        return await run_in_threadpool(looked)
    except Exception as error:
        if code_of(error) is None:
            raise
        raise GroundError(str(error)) from None

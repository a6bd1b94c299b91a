"""Which of hotset's programs a machine runs: those for its architecture."""

from __future__ import annotations

from pathlib import Path

from .base import Machine, PrerequisiteMissingError

ARCHITECTURES = {62: "x86_64", 183: "aarch64"}
"""By ELF's number (elf(5), ``e_machine``), as ``uname -m`` names them."""


class UnfitError(PrerequisiteMissingError):
    """A machine cannot run hotset's programs, or does not tell; nothing of them is there."""

    def __init__(self, machine: Machine, why: str) -> None:
        super().__init__(f"{machine.kind}: {why}; nothing was copied", field="machine")


def choose(machine: Machine, here: Path) -> Path:
    """The program for the machine: this computer's own, or the one for another architecture, which
    is beside it in a folder of that name (``aarch64/hotset-engine``), or where cargo puts it.

    :raises UnfitError: there is none, or the machine does not tell what it is.
    """
    reply = machine.run(["uname", "-sm"], check=False)
    if reply.made_up:
        return here
    system, _, architecture = reply.stdout.strip().partition(" ")
    if system != "Linux" or architecture not in ARCHITECTURES.values():
        raise UnfitError(
            machine,
            f"it is {reply.stdout.strip() or 'unknown what it is'}, and hotset's programs are for"
            f" Linux on {' and '.join(ARCHITECTURES.values())}",
        )
    cargo = here.parents[1] / f"{architecture}-unknown-linux-gnu/release" / here.name
    beside = here.parent / architecture / here.name
    for candidate in (here, beside, cargo):
        if candidate.exists() and architecture_of(candidate) == architecture:
            return candidate
    raise UnfitError(
        machine,
        f"its architecture is {architecture}, and {here} is for {architecture_of(here)}: put"
        f" {here.name} for {architecture} at {beside}",
    )


def architecture_of(file: Path) -> str:
    """:raises PrerequisiteMissingError: the file is no program."""
    with file.open("rb") as opened:
        head = opened.read(20)
    number = int.from_bytes(head[18:], "little")
    if head[:6] != b"\x7fELF\x02\x01" or number not in ARCHITECTURES:
        raise PrerequisiteMissingError(
            f"{file} is no program: run `make build` in hotset's folder, or install hotset again"
        )
    return ARCHITECTURES[number]

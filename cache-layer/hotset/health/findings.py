"""Findings about a machine's disks: records, and how they are shown to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hotset.core import errors
from hotset.core.errors import HotsetError, PrerequisiteError, Remedy, ThresholdError
from hotset.core.record import Record, derived

State = Literal["ok", "advice", "warning", "critical", "unknown"]
Subject = Literal[
    "flash",
    "state",
    "hit ratio",
    "hot data",
    "size and policy",
    "dirty data",
    "pins and shares",
    "warm-ups",
    "metadata",
    "thin pools",
    "flash wear",
]
TO_DO: tuple[State, ...] = ("critical", "warning")
"""States that require action; advice can be left."""
PARTS: tuple[tuple[str, tuple[State, ...]], ...] = (
    ("to be done", TO_DO),
    ("could be better", ("advice",)),
    ("not known", ("unknown",)),
)
"""How findings are shown, the gravest first; the rest is in order."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, or could not be.

    :ivar disk: empty: of the machine, or of a flash device.
    :ivar state: ``ok``: nothing is to be done; ``advice``: something could be better; ``warning``
        and ``critical``: something is to be done; ``unknown``: nobody could tell.
    :ivar text: the finding, with its figures, or why it is not known.
    :ivar remedies: what mends it, the best first; none: the text says what to do.
    """

    disk: str
    subject: Subject
    state: State
    text: str
    remedies: tuple[Remedy, ...] = ()

    @derived
    def requests(self) -> tuple[str, ...]:
        """The remedies in words of nobody's own."""
        return tuple(f"to {remedy.purpose}: {errors.request(remedy)}" for remedy in self.remedies)


@dataclass(frozen=True)
class Health(Record):
    """Findings of a machine, disk by disk.

    :ivar disks: disks that were examined.
    """

    csv_rows = "findings"

    machine: str
    disks: tuple[str, ...]
    findings: tuple[Finding, ...]

    @derived
    def to_do(self) -> int:
        """How many of the findings say that something is to be done."""
        return sum(finding.state in TO_DO for finding in self.findings)

    @derived
    def advice(self) -> int:
        """How many say that something could be better."""
        return sum(finding.state == "advice" for finding in self.findings)

    @derived
    def not_known(self) -> int:
        """How many say that nobody could tell."""
        return sum(finding.state == "unknown" for finding in self.findings)

    def to_text(self) -> str:
        """For people: what is to be done with its commands, then what could be better, then what is
        not known; a single line where there is nothing of all that."""
        if not self.disks and not self.findings:
            return "no disk is accelerated here"
        parts = [_part(self.findings, states, head) for head, states in PARTS]
        text = "\n\n".join(part for part in parts if part)
        fine = [finding for finding in self.findings if finding.state == "ok"]
        known = f"{len(fine)} of {len(self.findings)} looked at are in order"
        if text:
            return f"{text}\n\n{known}"
        ratios = [
            f"{finding.disk}: {finding.text}" for finding in fine if finding.subject == "hit ratio"
        ]
        return f"nothing to do on {', '.join(self.disks)} ({'; '.join(ratios) or known})"

    def failure(self) -> Exception | None:
        if not self.disks and not self.findings:
            where = {} if self.machine == "local" else {"machine": self.machine}
            return PrerequisiteError(
                f"nothing could be looked at: no disk of {self.machine} is accelerated",
                Remedy("see what lies on its devices", "tier scan", where),
            )
        if self.to_do:
            mine = (finding for finding in self.findings if finding.state in TO_DO)
            disks = dict.fromkeys(finding.disk or finding.subject for finding in mine)
            return ThresholdError(f"something is to be done: {', '.join(disks)}")
        if self.not_known:
            return PrerequisiteError(f"{self.not_known} of {len(self.findings)} are not known")
        return None


class Ask:
    """Makes the findings of one disk about one subject, with commands for its machine."""

    def __init__(self, machine: str, disk: str, subject: Subject) -> None:
        """:param machine: as ``--machine`` names it."""
        self.machine = machine
        self.disk = disk
        self.subject = subject

    def remedy(self, purpose: str, operation: str, **parameters: object) -> Remedy:
        """Build a remedy for this machine; this disk is added where nothing is given."""
        given = parameters or {"disk": self.disk}
        where = {} if self.machine == "local" else {"machine": self.machine}
        return Remedy(purpose, operation, {**given, **where})

    def say(self, state: State, text: str, *remedies: Remedy) -> Finding:
        return Finding(self.disk, self.subject, state, text, remedies)

    def unknown(self, why: BaseException | str) -> Finding:
        """Report a failed check; an error's own remedies are those of the finding."""
        known = why.remedies if isinstance(why, HotsetError) else ()
        helps = tuple(remedy for remedy in known if remedy.operation is not None)
        text = " ".join(str(why).split())
        return Finding(self.disk, self.subject, "unknown", text, helps)


def _part(findings: Sequence[Finding], states: tuple[State, ...], head: str) -> str:
    mine = [finding for state in states for finding in findings if finding.state == state]
    if not mine:
        return ""
    lines = [f"{head}:"]
    for finding in mine:
        where = f"{finding.disk}, {finding.subject}" if finding.disk else finding.subject
        state = f"{finding.state}: " if finding.state in TO_DO else ""
        lines.append(f"  {where}: {state}{finding.text}")
        lines += [f"    to {help_.purpose}: {errors.command(help_)}" for help_ in finding.remedies]
    return "\n".join(lines)

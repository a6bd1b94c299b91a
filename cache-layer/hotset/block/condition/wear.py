"""How worn a flash device says it is, by smartctl, nvme or the kernel's files of an eMMC.

Sources: NVM Express Base Specification 2.0, SMART / Health Information Log (``percentage_used`` may
exceed 100, and is in per cent of what the maker states; ``critical_warning`` has a bit for each);
ATA8-ACS, Device Statistics, page 7 ("Percentage Used Endurance Indicator"); SBC-4, Solid State
Media log page; JEDEC JESD84-B51, ``DEVICE_LIFE_TIME_EST`` (steps of 10 %, 11: over). smartctl(8)'s
exit code is a set of bits that says nothing of whether it printed JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hotset.core.machines.base import CommandTimeoutError, Machine, PrerequisiteMissingError

from .drives import Below, NotKnownError, below

_ANSWER_S = 20.0
_ENDURANCE = "Percentage Used Endurance Indicator"


@dataclass(frozen=True, slots=True)
class Wear:
    """Wear and health as a drive reports them.

    :ivar used: the share of its endurance that is used up, as its maker reckons; may exceed 1.
        An eMMC tells it in tenths: the upper end of its step.
    :ivar failing: critical warnings, in words; empty: none.
    """

    drive: PurePosixPath
    used: float
    failing: str = ""


def measure(machine: Machine, flash: PurePosixPath) -> list[Wear]:
    """The wear of each drive that a flash device lies on.

    :raises NotKnownError: one of them tells none, or nothing that can ask it is installed there.
    """
    drives = [drive for drive in below(machine, flash) if drive.is_last]
    if not drives:
        raise NotKnownError(f"which drive {flash} is on is not known")
    return [_of_drive(machine, drive) for drive in drives]


def _of_drive(machine: Machine, drive: Below) -> Wear:
    if drive.type_ != "disk":
        raise NotKnownError(f"{drive.path} is no drive (lsblk: {drive.type_}): it tells no wear")
    lacks = ""
    for ask in (_by_life_time, _by_smartctl, _by_nvme):
        try:
            wear = ask(machine, drive)
        except PrerequisiteMissingError as error:
            lacks = lacks or str(error)
            continue
        except CommandTimeoutError as error:
            raise NotKnownError(str(error)) from None
        if wear is not None:
            return wear
    why = f" ({lacks})" if lacks else ""
    raise NotKnownError(f"{drive.path} does not tell how worn it is{why}")


def _by_life_time(machine: Machine, drive: Below) -> Wear | None:
    """An eMMC's own, of which the worse of its two kinds of memory counts."""
    path = f"/sys/class/block/{drive.path.name}/device/life_time"
    result = machine.run(["cat", path], check=False)
    steps = [int(word, 16) for word in result.stdout.split()] if result.rc == 0 else []
    # 0: not defined by its maker.
    return Wear(drive.path, max(steps) / 10) if any(steps) else None


def _by_smartctl(machine: Machine, drive: Below) -> Wear | None:
    argv = ["smartctl", "--json", "--xall", str(drive.path)]
    report = _json_of(machine.run(argv, check=False, timeout_s=_ANSWER_S).stdout)
    used = endurance_used(report)
    if used is None:
        return None
    passed = report.get("smart_status", {}).get("passed")
    failing = "" if passed is not False else "its own test of its health says that it fails"
    log = report.get("nvme_smart_health_information_log", {})
    return Wear(drive.path, used, failing or describe_warning(log))


def _by_nvme(machine: Machine, drive: Below) -> Wear | None:
    if not drive.name.startswith("nvme"):
        return None
    argv = ["nvme", "smart-log", "--output-format=json", str(drive.path)]
    log = _json_of(machine.run(argv, check=False, timeout_s=_ANSWER_S).stdout)
    used = log.get("percent_used", log.get("percentage_used"))
    return None if used is None else Wear(drive.path, used / 100, describe_warning(log))


def endurance_used(report: Mapping[str, Any]) -> float | None:
    """The share of a drive's endurance that is used, from smartctl's JSON; None: it tells none.

    >>> endurance_used({"nvme_smart_health_information_log": {"percentage_used": 7}})
    0.07
    >>> endurance_used({"scsi_percentage_used_endurance_indicator": 3})
    0.03
    """
    log = report.get("nvme_smart_health_information_log", {})
    pages = report.get("ata_device_statistics", {}).get("pages", [])
    percents = [
        report.get("endurance_used", {}).get("current_percent"),
        log.get("percentage_used"),
        report.get("scsi_percentage_used_endurance_indicator"),
        *(
            row["value"]
            for page in pages
            for row in page.get("table", ())
            if row.get("name") == _ENDURANCE and row.get("flags", {}).get("valid")
        ),
    ]
    return next((percent / 100 for percent in percents if percent is not None), None)


def describe_warning(log: Mapping[str, Any]) -> str:
    """Describe the critical warnings of an NVMe drive; empty: none.

    >>> describe_warning({"critical_warning": 9})
    'it warns: too little spare room, its media are read-only'
    >>> [describe_warning(log) for log in ({"critical_warning": 32}, {"percentage_used": 3}, {})]
    ['it warns: of bit 5', 'it does not say what it warns of', '']
    """
    if not log:
        return ""  # no NVMe drive
    warning = log.get("critical_warning")
    if warning is None:
        return "it does not say what it warns of"
    bits: tuple[str, ...] = (
        *("too little spare room", "its temperature", "its reliability is degraded"),
        *("its media are read-only", "its memory's backup has failed"),
    )
    bits += tuple(f"of bit {bit}" for bit in range(len(bits), 8))
    warnings = [text for bit, text in enumerate(bits) if warning >> bit & 1]
    return f"it warns: {', '.join(warnings)}" if warnings else ""


def _json_of(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}

"""Recording of a block device's requests, on the machine that has it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from secrets import token_hex

from hotset.block import programs
from hotset.block.programs import OnRead
from hotset.core.clock import wait_until
from hotset.core.errors import Interrupted, RequestError
from hotset.core.machines.base import Machine

from .caches import TraceFigures

_THERE = PurePosixPath("/var/tmp")  # noqa: S108 - a name nobody knows, of a file that is new
_KEEP_S = 30.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """:ivar cpu_s: seconds of a core that it took."""

    figures: TraceFigures
    cpu_s: float
    recorded_s: float


def record(machine: Machine, device: str, output: str, seconds: float, on_read: OnRead) -> Recorded:
    """``hotset-engine record`` on a machine; the trace comes to this computer.

    :raises RequestError: the output cannot be written.
    :raises RefusedError: it is no block device.
    :raises Interrupted: by Ctrl-C; the trace has what was recorded until then.
    """
    target = Path(output)
    if not target.parent.is_dir():
        raise RequestError(f"there is no folder {target.parent}", field="output")
    local = machine.kind == "local"
    trace = PurePosixPath(output) if local else _THERE / f"hotset-{token_hex(8)}.trace"
    words = ["record", device, f"--to={trace}", f"--seconds={seconds}"]
    try:
        figures = programs.figures(machine, programs.engine(machine), words, on_read)
        if not local:
            machine.get(trace, target)
    except KeyboardInterrupt:
        _keep(machine, trace, target)
        raise Interrupted(f"{output} has what was recorded until then") from None
    finally:
        if not local:
            machine.run(["rm", "-f", str(trace)], check=False)
    cpu_s, recorded_s = figures.pop("cpu_s"), figures.pop("recorded_s")
    return Recorded(TraceFigures(**figures), cpu_s, recorded_s)


def _keep(machine: Machine, trace: PurePosixPath, target: Path) -> None:
    """Have what was recorded until an interrupt here: the recorder was told to end, and gives the
    trace its name once it is whole.

    :raises KeyboardInterrupt: it does not.
    """
    exists = ["test", "-e", str(trace)]
    if not wait_until(lambda: machine.run(exists, check=False).rc == 0, _KEEP_S, 0.2):
        raise KeyboardInterrupt
    if machine.kind != "local":
        machine.get(trace, target)

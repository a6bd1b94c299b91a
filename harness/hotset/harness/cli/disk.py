"""``hotset disk calibrate``: does the modelled disk do what its model promises?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.harness.cli.options import Format, FormatOption, MachineOption, QuietOption, size_of

if TYPE_CHECKING:
    from hotset.harness.calibrate import Line

app = typer.Typer(help="The modelled slow disk.", no_args_is_help=True)


@app.callback()
def disk() -> None:
    """The modelled slow disk."""


@app.command("calibrate")
def calibrate_disk(
    model: Annotated[
        str, typer.Option(help="A built-in model's name, or its JSON file.")
    ] = "nas-2014",
    time_scale: Annotated[float, typer.Option(min=0.1, help="Slow the model so many times.")] = 1.0,
    size: Annotated[str, typer.Option(help="Size of the disk.")] = "1GiB",
    machine: MachineOption = "auto",
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Run fio on the slow disk through the whole chain (iSCSI included), beside its model.

    Ends with code 5 when a figure is off by more than 15 %.
    """
    from hotset.cachelayer import lab as labs
    from hotset.cachelayer.units import Bytes
    from hotset.harness import calibrate, doctor
    from hotset.harness.calibrate import TOLERANCE
    from hotset.harness.journal import ThresholdMissedError
    from hotset.harness.progress import Reporter

    report, bytes_ = Reporter(quiet), size_of(size, "--size")
    doctor.require(labs.choose(machine))
    spec = labs.LabSpec(machine, cores=2, memory=Bytes(2 * 1024**3), flash=Bytes(64 * 1024**2))
    with labs.standing(spec, "disk calibrate", report.say) as lab:
        storage = lab.ground.slow_disk(model, bytes_, time_scale)
        with lab.takedown.part():
            device = storage.attach(lab.takedown)
            lines = calibrate.disk(lab.machine, device, model, bytes_, time_scale, report)
    _print(lines, model, time_scale, format_)
    worst = max(lines, key=lambda line: abs(line.off))
    if abs(worst.off) > TOLERANCE:
        raise ThresholdMissedError(
            f"{worst.what}: {worst.measured:.1f} {worst.unit} measured is {worst.off:+.0%} off the"
            f" {worst.asked:.1f} asked (allowed: {TOLERANCE:.0%}); is the computer busy?"
        )


def _print(lines: list[Line], model: str, time_scale: float, format_: Format) -> None:
    from rich.console import Console
    from rich.table import Table

    from hotset.harness.progress import to_stdout
    from hotset.reports.document import SCHEMA_VERSION

    if format_ is Format.JSON:
        rows = [
            {"what": one.what, "unit": one.unit, "asked": one.asked, "measured": one.measured}
            for one in lines
        ]
        to_stdout(json.dumps({"schema_version": SCHEMA_VERSION, "model": model,
                              "time_scale": time_scale, "lines": rows}, indent=1))  # fmt: skip
        return
    if format_ is Format.CSV:
        to_stdout("what,unit,asked,measured")
        for one in lines:
            to_stdout(f'"{one.what}",{one.unit},{one.asked:.3f},{one.measured:.3f}')
        return
    scaled = f", time-scaled {time_scale:g}×" if time_scale != 1 else ""
    table = Table(title=f"modelled disk {model}{scaled}", box=None, title_justify="left")
    table.add_column("")
    for name in ("asked", "measured", "unit", "off"):
        table.add_column(name, justify="right")
    for one in lines:
        digits = 1 if one.measured < 1000 else 0
        table.add_row(one.what, f"{one.asked:.{digits}f}", f"{one.measured:.{digits}f}", one.unit,
                      f"{one.off:+.1%}")  # fmt: skip
    Console().print(table)

"""``hotset lab image|up|status|shell|down|calibrate``: the ground, by hand."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from hotset.harness.cli.options import Format, FormatOption, QuietOption

app = typer.Typer(help="The lab: a machine with a slow disk and a flash disk.",
                  no_args_is_help=True)  # fmt: skip
_MEMORY = 2 * 1024**3
_SIZE = 1024**3


@app.command("image")
def build_image(quiet: QuietOption = False) -> None:
    """Build the frozen Debian image that the lab runs in, where it needs one and there is none.

    The first run does so, too.
    """
    from hotset.cachelayer import image
    from hotset.cachelayer import lab as labs
    from hotset.cachelayer.local import Local
    from hotset.harness.progress import Reporter

    report = Reporter(quiet)
    if labs.choose("auto", "auto") == "local":
        report.say("this kernel has dm-cache: the lab runs on it, without an image")
        return
    report.say(f"the image is there: {image.ensure(Local(), report.say).folder}")


@app.command("up")
def up(
    model: Annotated[str, typer.Option(help="The slow disk's model.")] = "nas-2014",
    time_scale: Annotated[float, typer.Option(min=0.1, help="Slow it so many times.")] = 1.0,
    quiet: QuietOption = False,
) -> None:
    """Boot the virtual machine with a slow iSCSI disk and a flash disk, and leave it up."""
    from hotset.cachelayer import lab as labs
    from hotset.cachelayer.local import Local
    from hotset.cachelayer.takedown import Takedown, exclusive
    from hotset.cachelayer.units import Bytes
    from hotset.harness import doctor
    from hotset.harness.progress import Reporter

    size = Bytes(_SIZE)
    report, local, folder = Reporter(quiet), Local(), labs.lab_folder()
    with exclusive(folder):
        labs.refuse_or_clear(folder, report.say)
        doctor.require("vm")
        takedown = Takedown(folder, local)
        takedown.owner(labs.LEFT_UP)
        try:
            spec = labs.LabSpec("vm", 2, Bytes(_MEMORY), size)
            lab = labs.raise_lab(spec, folder, takedown, report.say)
            slow = lab.ground.slow_disk(model, size, time_scale).attach(takedown)
        except BaseException:
            takedown.undo()
            raise
        lab.close()
    report.say(f"up: slow disk {slow}, flash {labs.VM_FLASH}")
    report.say("look inside: hotset lab shell; take it down: hotset lab down")


@app.command("status")
def status(format_: FormatOption = Format.TABLE) -> None:
    """What stands now, and who made it."""
    from hotset.cachelayer import lab as labs
    from hotset.harness.progress import to_stdout
    from hotset.reports.document import SCHEMA_VERSION
    from hotset.reports.tables import csv_text

    found = labs.status(labs.lab_folder())
    if format_ is Format.JSON:
        to_stdout(json.dumps({"schema_version": SCHEMA_VERSION, **found.as_dict()}, indent=1))
        return
    if format_ is Format.CSV:
        columns = ("state", "purpose", "process", "pid", "running")
        rows: list[tuple[object, ...]] = [(found.state, found.purpose, None, None, None)]
        if found.processes:
            rows = [(found.state, found.purpose, *process) for process in found.processes]
        to_stdout(csv_text(columns, rows))
        return
    to_stdout(f"lab: {found.state}" + (f" ({found.purpose})" if found.purpose else ""))
    for name, pid, alive in found.processes:
        to_stdout(f"  {name}: pid {pid}, {'running' if alive else 'gone'}")


@app.command("shell")
def shell(
    command: Annotated[
        list[str] | None, typer.Argument(help="Run this instead of a shell.")
    ] = None,
) -> None:
    """Open a root shell in the lab's virtual machine (needs `hotset lab up`)."""
    from hotset.cachelayer import image
    from hotset.cachelayer import lab as labs
    from hotset.cachelayer.local import Local
    from hotset.cachelayer.machine import EnvironmentLacksError
    from hotset.cachelayer.vm import SSH_PORT, known_hosts

    folder, built = labs.lab_folder(), image.cached()
    port = labs.forwarded_ports(folder).get(SSH_PORT)
    if built is None or port is None:
        raise EnvironmentLacksError("no virtual machine is up: start one with `hotset lab up`")
    if Local().which("ssh") is None:
        raise EnvironmentLacksError("ssh is not installed: apt-get install openssh-client")
    argv = ["ssh", "-q", "-p", str(port), "-i", str(built.client_key),
            "-o", f"UserKnownHostsFile={known_hosts(folder)}", "-o", "IdentitiesOnly=yes",
            "root@127.0.0.1", *(command or ())]  # fmt: skip
    os.execvp("ssh", argv)  # noqa: S606


@app.command("down")
def down(quiet: QuietOption = False) -> None:
    """Take down the lab, and clear what a killed run left."""
    from hotset.cachelayer import lab as labs
    from hotset.harness.progress import Reporter

    report = Reporter(quiet)
    if labs.down(report.say) == 0:
        report.say("nothing was up")


@app.command("calibrate")
def calibrate_cpu(format_: FormatOption = Format.TABLE, quiet: QuietOption = False) -> None:
    """How many times slower the lab's CPU is than this computer's, on the same work."""
    from hotset.cachelayer import lab as labs
    from hotset.cachelayer.units import Bytes
    from hotset.harness import calibrate
    from hotset.harness.progress import Reporter, to_stdout
    from hotset.reports.document import SCHEMA_VERSION
    from hotset.reports.tables import csv_text

    report = Reporter(quiet)
    spec = labs.LabSpec("auto", 2, Bytes(_MEMORY), Bytes(64 * 1024**2))
    with labs.standing(spec, "lab calibrate", report.say) as lab:
        slowdown = calibrate.cpu_slowdown(lab)
        kind, accel = lab.machine.kind, lab.accel
    figures = {"machine": kind, "accel": accel, "cpu_slowdown": slowdown}
    if format_ is Format.JSON:
        to_stdout(json.dumps({"schema_version": SCHEMA_VERSION, **figures}, indent=1))
    elif format_ is Format.CSV:
        to_stdout(csv_text(figures, [figures.values()]))
    else:
        name = f"{kind} ({accel})" if accel else kind
        to_stdout(f"{name}: CPU {slowdown:.2f} times slower than this computer's")

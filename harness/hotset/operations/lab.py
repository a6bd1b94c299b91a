"""Try things out in the lab: a machine with a slow disk and a flash disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hotset.core import fields
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.operation import (
    Context,
    Kind,
    Lines,
    Lock,
    Nothing,
    Request,
    operation,
)
from hotset.core.record import extend
from hotset.core.rights import Right
from hotset.core.units import Bytes

if TYPE_CHECKING:
    from hotset.experiment.site.live import LabStatus
    from hotset.lab.image import LabImage

_MEMORY, _SIZE = Bytes(2 * 1024**3), Bytes(1024**3)
_LAB = Lock("lab")


@operation(
    "lab image",
    Kind.JOB,
    Right.OPERATE,
    ("New", "HotsetLabImage"),
    progress=True,
    lock=lambda request: _LAB,  # noqa: ARG005
    result="lab.image:LabImage",
)
def build_image(request: Nothing, context: Context) -> LabImage:  # noqa: ARG001
    """Build the Debian image that the lab runs in, if it needs one and there is none yet.

    The first run does this as well.
    """
    from hotset.core.machines.local import Local
    from hotset.lab import image
    from hotset.lab import lab as labs

    if labs.choose("auto", "auto") == "local":
        return image.LabImage("local", None)
    folder = image.ensure(Local(), context.report.say).folder
    return image.LabImage(labs.choose("auto"), folder)


class Up(Request):
    model: Annotated[fields.DiskModel, Field(description="The slow disk's model.")] = "nas-2014"
    machine: Annotated[
        Literal["auto", "local", "uml", "vm"],
        Field(
            description="`local`: this computer, with a cache in user space and a loaded database."
            " The others boot a machine with two disks and no cache yet."
        ),
    ] = "auto"
    warehouses: Annotated[
        int, Field(ge=1, le=100, description="TPC-C warehouses of the database (`local`).")
    ] = 2


@operation(
    "lab up",
    Kind.JOB,
    Right.OPERATE,
    ("Start", "HotsetLab"),
    progress=True,
    lock=lambda request: _LAB,  # noqa: ARG005
)
def up(request: Up, context: Context) -> Lines:
    """Start a lab to try things out, and leave it running.

    Its slow disk and its flash device are modelled. If you are root and this computer has FUSE and
    loop devices, the lab is PostgreSQL with TPC-C on an accelerated disk, right here. Otherwise it
    boots a machine (User-Mode Linux if that boots here and there is no KVM, else a virtual
    machine), and you put a cache in front of its disk with `tier create`.
    """
    from hotset.experiment.site import live
    from hotset.lab import doctor
    from hotset.lab import lab as labs

    labs.require_host()
    lacks = live.lacking()
    if request.machine == "local" or (request.machine == "auto" and lacks is None):
        if lacks is not None:
            raise PrerequisiteMissingError(f"a lab on this computer is not possible: {lacks}")
        context.require_room(live.disk_bytes(request.warehouses), "warehouses")
        doctor.require("image")
        lab = live.up(request.warehouses, request.model, context.report)
        context.report.say(f"up: {lab.device}, its slow disk {lab.slow}, flash {lab.flash}")
        return Lines(("try:", *(f"  {command}" for command in lab.next_commands)))
    context.require_room(2 * int(_SIZE), "machine")
    _boot(request, context)
    return Lines()


def _boot(request: Up, context: Context) -> None:
    from hotset.block import devices
    from hotset.core.machines.cleanup import Cleanup, exclusive
    from hotset.core.machines.local import Local
    from hotset.lab import doctor
    from hotset.lab import lab as labs

    report, local, folder = context.report, Local(), labs.lab_folder()
    with exclusive(folder):
        labs.refuse_or_clear(folder, report.say)
        spec = labs.LabSpec(request.machine, 2, _MEMORY, _SIZE, guest=True)
        doctor.require(spec.kind())
        cleanup = Cleanup(folder, local)
        cleanup.owner(labs.LEFT_UP)
        try:
            lab = labs.raise_lab(spec, folder, cleanup, report.say)
            disk = lab.backend.slow_disk(request.model, _SIZE)
            attached = devices.inspect(lab.machine, disk.attach(cleanup))
        except BaseException:
            cleanup.undo()
            raise
        lab.close()
    slow = devices.lasting_name(attached)
    report.say(f"up: {lab.kind}, slow disk {slow}, flash {labs.FLASH_DISK}")
    report.say(f"use it as machine {lab.kind}; `hotset lab shell` opens a shell there")


@operation(
    "lab status",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetLab"),
    result="experiment.site.live:LabStatus",
)
def status(request: Nothing, context: Context) -> LabStatus:  # noqa: ARG001
    """Show what is running, and who started it."""
    from hotset.experiment.site import live
    from hotset.lab import lab as labs

    status = labs.status(labs.lab_folder())
    return extend(live.LabStatus, status, live=live.find_live())


class Down(Request):
    yes: fields.Yes = False


def _in_use(request: Down) -> str | None:  # noqa: ARG001
    from .lab_use import in_use

    uses = in_use()
    if not uses:
        return None
    is_one = len(uses) == 1
    return (
        f"in this lab {'runs' if is_one else 'run'} {', '.join(uses)}, and"
        f" {'it fails' if is_one else 'they fail'} if the lab is taken down"
    )


def _question(request: Down) -> str | None:
    text = _in_use(request)
    return text and f"{text}. Take it down?"


@operation(
    "lab down",
    Kind.JOB,
    Right.OPERATE,
    ("Stop", "HotsetLab"),
    asked=lambda request: _in_use(request) is not None,
    question=_question,
    at_stake=_in_use,
    progress=True,
    lock=lambda request: _LAB,  # noqa: ARG005
    stops=True,
)
def down(request: Down, context: Context) -> Lines:  # noqa: ARG001
    """Stop the lab, and clean up what a killed run left behind.

    Asks first where a benchmark or a warm-up runs in it, as that would fail.
    """
    from hotset.experiment.site import live

    if live.take_down(context.report.say) == 0:
        context.report.say("nothing was up")
    return Lines()

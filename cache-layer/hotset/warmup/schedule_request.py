"""Parameters of a schedule: what to do, and on which of three occasions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hotset.core import fields
from hotset.core.operation import Cli, OnThisComputer, Request
from hotset.disk import places


class Add(Request):
    targets: Annotated[
        fields.Targets | None,
        Field(description="What to cache at the times of --at, as for `warmup run`."),
        Cli(argument=True, metavar="TARGET"),
    ] = None
    at: Annotated[
        fields.Expression | None,
        Field(description="When to run, as in systemd.time(7), such as 'Mon..Fri 07:00'."),
    ] = None
    on_boot: Annotated[
        bool, Field(description="Restore the last snapshot when the machine boots.")
    ] = False
    on_shutdown: Annotated[
        bool, Field(description="Save a snapshot when the machine shuts down.")
    ] = False
    name: Annotated[
        fields.Word | None,
        Field(
            description="Name of the schedule; by default it comes from the disk and the occasion."
        ),
    ] = None
    disk: places.DiskOption = None
    machine: fields.Machine = "local"
    method: Annotated[
        Literal["auto", "offline", "online"], Field(description="As for `warmup run`.")
    ] = "auto"
    rate: Annotated[fields.Rate | None, Field(description="Highest rate, such as 50MB/s.")] = None
    engine: fields.Product = "postgres"
    dsn: Annotated[
        fields.Server | None,
        Field(description="The database's address, as seen from that machine."),
    ] = None
    password_file: Annotated[
        fields.ReadFile | None,
        Field(description="A file that holds the password, on the disk's machine."),
    ] = None
    program: Annotated[
        fields.Text | None,
        Field(description="Full path of hotset on that machine."),
        OnThisComputer,
    ] = None
    no_enable: Annotated[bool, Field(description="Write the units, but do not enable them.")] = (
        False
    )
    dry_run: Annotated[bool, Field(description="Print the units without writing them.")] = False

    @property
    def occasion(self) -> str:
        return "boot" if self.on_boot else "shutdown" if self.on_shutdown else "timed"

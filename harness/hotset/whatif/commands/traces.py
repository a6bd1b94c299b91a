"""Traces of block storage: which requests a disk got, and when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hotset.core import fields
from hotset.core.machines import names as machines
from hotset.core.machines.local import Local
from hotset.core.operation import Cli, Context, Kind, Request, operation
from hotset.core.record import extend
from hotset.core.rights import Right
from hotset.core.units import Bytes
from hotset.core.words import percent

if TYPE_CHECKING:
    from hotset.block.programs import OnRead

    from ..caches import RecordedTrace, Trace

TraceFile = Annotated[
    fields.ReadFile,
    Field(
        description="The trace (see `hotset whatif trace`), or a workload whose requests are"
        " generated on the fly, such as tpcc:warehouses=5000,buffer=24GiB or tpch:scale=600."
    ),
    Cli(argument=True, metavar="TRACE"),
]
Output = Annotated[fields.WrittenFile, Field(description="The trace to write.")]
Recorder = Literal["hotset", "blkparse", "ftrace", "iolog", "msr", "systor", "oracle-general"]


class Show(Request):
    trace: TraceFile


@operation(
    "whatif trace show",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetTrace"),
    result="whatif.caches:Trace",
)
def show(request: Show, context: Context) -> Trace:  # noqa: ARG001
    """Read a whole trace and sum it up: how many requests, when, to which part of the disk."""
    from .. import caches

    figures = caches.trace_figures(Local(), request.trace)
    return extend(caches.Trace, figures, trace=request.trace)


class Convert(Request):
    recording: Annotated[
        fields.ReadFile,
        Field(description="The other program's recording."),
        Cli(argument=True, metavar="FILE"),
    ]
    output: Output
    force: fields.Force = False
    recorder: Annotated[
        Recorder,
        Field(
            description="What recorded it: blktrace (as blkparse's text), the kernel's ftrace,"
            " fio's write_iolog, MSR Cambridge's or Systor '17's CSV files, libCacheSim's"
            " oracleGeneral. hotset's own are text or binary."
        ),
    ] = "hotset"
    of_disk: Annotated[
        fields.Expression | None,
        Field(
            description="Only this disk, as the recording names it: 8,16 of blkparse, 0 of MSR, a"
            " file of fio. Needed if there are several."
        ),
    ] = None
    id_size: Annotated[
        fields.Size | None,
        Field(description="How many bytes one id of oracleGeneral stands for; 512 if left out."),
    ] = None


@operation(
    "whatif trace convert",
    Kind.JOB,
    Right.OPERATE,
    ("Import", "HotsetTrace"),
    progress=True,
    result="whatif.caches:Trace",
)
def convert(request: Convert, context: Context) -> Trace:
    """Convert another program's recording to hotset's own format, compact and checked."""
    from .. import caches

    fields.require_new(request.output, request.force)
    words = ["convert", request.recording]
    if request.recorder != "hotset":
        words.append(f"--from={request.recorder}")
    if request.of_disk is not None:
        words.append(f"--of-disk={request.of_disk}")
    if request.id_size is not None:
        words.append(f"--id-size={int(Bytes.parse(request.id_size))}")
    with context.report.task(f"reading {request.recording}"):
        figures = caches.write_trace(Local(), words, Path(request.output), on_read(context))
    return extend(caches.Trace, figures, trace=request.output)


class Tpcc(Request):
    warehouses: Annotated[
        int, Field(ge=1, le=100_000, description="Number of warehouses, about 100 MB each.")
    ]
    output: Output
    force: fields.Force = False
    buffer: Annotated[fields.Size, Field(description="The database's own cache in memory.")] = (
        "1GiB"
    )
    tpm: Annotated[
        float, Field(ge=1, le=1e9, description="Transactions of all kinds per minute.")
    ] = 60_000.0
    seconds: Annotated[float, Field(ge=1, le=fields.DAYS_S, description="How long.")] = 900.0
    checkpoint: Annotated[
        float, Field(ge=1, le=86_400, description="Seconds from one checkpoint to the next.")
    ] = 300.0
    seed: Annotated[fields.Seed, Field(description="Of the random numbers.")] = 1


@operation(
    "whatif trace tpcc",
    Kind.JOB,
    Right.OPERATE,
    ("New", "HotsetTpccTrace"),
    progress=True,
    result="whatif.caches:Trace",
)
def tpcc(request: Tpcc, context: Context) -> Trace:
    """Generate the requests that TPC-C sends to a disk, at any scale, without a database.

    Rows are drawn as the specification says and lie on PostgreSQL's pages; the database's own cache
    and its checkpoints are simulated, and tables grow.
    """
    fields.require_new(request.output, request.force)
    words = ["tpcc", f"--warehouses={request.warehouses}", f"--tpm={request.tpm}"]
    words += [f"--seconds={request.seconds}", f"--checkpoint={request.checkpoint}"]
    words += [f"--buffer={int(Bytes.parse(request.buffer))}", f"--seed={request.seed}"]
    return _make(words, request.output, context)


class Tpch(Request):
    scale: Annotated[
        float, Field(ge=0.01, le=100_000, description="The scale factor; 1 is about 1.3 GB.")
    ]
    output: Output
    force: fields.Force = False
    buffer: Annotated[fields.Size, Field(description="The database's own cache in memory.")] = (
        "1GiB"
    )
    read_rate: Annotated[fields.Rate, Field(description="How fast it reads.")] = "200MB/s"
    rounds: Annotated[int, Field(ge=1, le=1000, description="How often all queries run.")] = 1


@operation(
    "whatif trace tpch",
    Kind.JOB,
    Right.OPERATE,
    ("New", "HotsetTpchTrace"),
    progress=True,
    result="whatif.caches:Trace",
)
def tpch(request: Tpch, context: Context) -> Trace:
    """Generate the scans of TPC-H's 22 queries, one after the other, at any scale."""
    fields.require_new(request.output, request.force)
    rate = fields.maybe_rate(request.read_rate)
    words = ["tpch", f"--scale={request.scale}", f"--rounds={request.rounds}", f"--rate={rate:d}"]
    words.append(f"--buffer={int(Bytes.parse(request.buffer))}")
    return _make(words, request.output, context)


def _make(words: list[str], output: str, context: Context) -> Trace:

    from .. import caches

    with context.report.task(f"writing {output}"):
        figures = caches.write_trace(Local(), words, Path(output), on_read(context))
    return extend(caches.Trace, figures, trace=output)


class Record(Request):
    device: Annotated[
        fields.Device,
        Field(description="A disk, partition or volume; it needs no cache."),
        Cli(argument=True, metavar="DEVICE"),
    ]
    output: Output
    force: fields.Force = False
    machine: fields.Machine = "local"
    minutes: Annotated[float, Field(ge=0.01, le=14 * 24 * 60, description="How long.")] = 15.0


@operation(
    "whatif record",
    Kind.JOB,
    Right.ADMIN,
    ("Start", "HotsetTraceRecording"),
    progress=True,
    result="whatif.caches:RecordedTrace",
)
def record(request: Record, context: Context) -> RecordedTrace:
    """Record the requests to a block device, on this computer or a server (needs root).

    The kernel traces the time, kind and place of each request, never its content. The device needs
    no cache. Ctrl-C ends it early: the trace has what was recorded until then.
    """
    from .. import recording
    from ..caches import RecordedTrace

    fields.require_new(request.output, request.force)
    with machines.open_machine(request.machine) as machine:
        seconds = request.minutes * 60

        def tell(requests: int, share: float | None) -> None:
            left = seconds * (1 - (share or 0))
            context.report.figure(f"{requests:,} requests, {left:,.0f} s to go")

        words = f"recording {request.device} for {request.minutes:g} minutes; Ctrl-C ends it early"
        with context.report.task(words):
            recorded = recording.record(machine, request.device, request.output, seconds, tell)
    share = recorded.cpu_s / max(recorded.recorded_s, 1e-9)
    return extend(
        RecordedTrace,
        recorded.figures,
        trace=request.output,
        device=request.device,
        recorded_s=recorded.recorded_s,
        cpu_share=share,
    )


def on_read(context: Context) -> OnRead:
    """Tells how many requests were read, and how long the rest takes where that is known."""
    from hotset.core.progress import Measured

    begun = context.report.seconds

    def tell(requests: int, share: float | None) -> None:
        seconds = max(context.report.seconds - begun, 1e-9)
        text = f"{requests:,} requests, {requests / seconds / 1e6:.1f} million a second"
        measured = None
        if share:
            measured = Measured.by_rate(requests, round(requests / share), "requests", seconds)
            text += f", {percent(share)}, ETA {measured.eta_s or 0:.0f} s"
        context.report.figure(text, measured)

    return tell

"""``hotset jobs list|show|cancel|rm``: what the console and the HTTP API have started."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hotset.core.words import listing

from .options import Format, FormatOption

if TYPE_CHECKING:
    from hotset.operations.jobs.store import Job

app = typer.Typer(
    help="Manage the jobs that the console and the HTTP API have started.", no_args_is_help=True
)
JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="A job's id as `jobs list` shows it, or 'last'.")
]
_COLUMNS = ("id", "verb", "machine", "state", "latest")


@app.command("list")
def list_jobs(format_: FormatOption = Format.TABLE) -> None:
    """List all jobs, newest first."""
    from hotset.core.progress import to_stdout
    from hotset.operations.jobs import store as jobs

    every = jobs.every()
    if format_ is Format.JSON:
        # All that is known of them, not the columns alone.
        listed = [job.as_dict() for job in every]
        to_stdout(json.dumps({"schema_version": jobs.SCHEMA_VERSION, "jobs": listed}, indent=1))
        return
    rows = [[getattr(job, name) for name in _COLUMNS] for job in every]
    to_stdout(listing("jobs", jobs.SCHEMA_VERSION, _COLUMNS, rows, format_.value, "no jobs yet"))


@app.command("show")
def show_job(
    job: JobArgument,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep printing its messages until it ends.")
    ] = False,
    format_: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")
    ] = "table",
) -> None:
    """Show a job's request, its last messages and, as JSON, its result."""
    import asyncio

    from hotset.core.progress import to_stdout
    from hotset.operations.jobs import store as jobs

    record = jobs.find(job)
    if follow:
        try:
            asyncio.run(_follow(record))
        except KeyboardInterrupt:
            # How one stops looking; the job goes on.
            raise typer.Exit(0) from None
        record = jobs.find(record.id)
    if format_ == "json":
        whole = {
            "schema_version": jobs.SCHEMA_VERSION,
            **record.as_dict(),
            "cause": jobs.cause(record),
            "result": jobs.result(record),
        }
        to_stdout(json.dumps(whole, indent=1))
    else:
        to_stdout("\n".join(_lines(record, with_messages=not follow)))


@app.command("cancel")
def cancel_job(job: JobArgument) -> None:
    """Interrupt a job, as Ctrl-C would. It removes what it had set up."""
    from hotset.operations import audit
    from hotset.operations.jobs import store as jobs

    record = jobs.find(job)
    if not record.running:
        typer.echo(f"job {record.id} has ended: {record.state}", err=True)
        return
    with audit.keeping(audit.on_command_line(), "jobs cancel", {"job": record.id}):
        jobs.cancel(record.id)
    typer.echo(
        f"interrupted {record.id}; `hotset jobs show --follow {record.id}` shows how it ends",
        err=True,
    )


@app.command("rm")
def remove_job(job: JobArgument) -> None:
    """Delete a job that has ended, with its messages."""
    from hotset.operations import audit
    from hotset.operations.jobs import store as jobs

    record = jobs.find(job)
    with audit.keeping(audit.on_command_line(), "jobs rm", {"job": record.id}):
        jobs.remove(record.id)
    typer.echo(f"removed {record.id}", err=True)


def _lines(job: Job, with_messages: bool) -> list[str]:
    values = ", ".join(f"{name} {value}" for name, value in job.values.items())
    ended = "" if job.code is None else f" (code {job.code})"
    shown = {
        "job": job.id,
        "verb": job.verb,
        "with": values,
        "machine": job.machine,
        "started": f"{job.started:%Y-%m-%d %H:%M:%S}",
        "state": f"{job.state}{ended}",
        "latest": job.latest if job.running or job.figures else "",
    }
    lines = [f"{name:<9} {text}" for name, text in shown.items() if text]
    return [*lines, *([""] if job.messages else []), *job.messages] if with_messages else lines


async def _follow(job: Job) -> None:
    from hotset.operations.jobs import store as jobs

    async for event in jobs.follow(job.id):
        if event.kind != "end":
            typer.echo(event.text, err=True)

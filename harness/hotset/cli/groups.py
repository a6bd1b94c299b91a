"""The commands by their first word. Those that operations make are made when they are called for:
`hotset --help` waits for no model of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import typer

from . import alternate, console, jobs, shell, top, watch

Command = Callable[..., None]
GROUPS: Mapping[str, str] = {
    "experiment": "Run experiments: each is one TOML file, from baseline to report.",
    "runs": "List, show, compare and delete finished runs; measure two states in turn.",
    "tpcc": "Run TPC-C on your own database (results are TPROC-C, not audited TPC results).",
    "sql": "Run SQL scripts of your own as a benchmark, on your own database.",
    "heat": "See which parts of a disk are accessed most: access counts per region,"
    " decayed over time. The kernel counts from `heat start` until `heat stop` or"
    " a reboot.",
    "report": "Show the report of a run (`hotset report RUN`), and hit ratios, their history and"
    " metrics of accelerated disks.",
    "tier": "Set up, inspect, change and remove the flash cache of a server's disks.",
    "warmup": "Fill a disk's cache before its users arrive. TARGETs, most important first: the"
    " full path of a file or folder, database:NAME (--dsn), on PostgreSQL table:NAME and"
    " index:NAME, region:OFFSET+LENGTH, heat, snapshot:FILE.",
    "lab": "Try things out in the lab: a machine with a slow disk and a flash disk.",
    "disk": "Benchmark disks, and work with models of devices.",
    "tpch": "Run TPC-H on your own database: load it, run the 22 queries and the refresh"
    " functions, check the answers. Results are TPROC-H values, derived from TPC-H; they are not"
    " audited TPC results.",
    "whatif": "Predict how much flash a disk needs, how caches would do on a recorded trace, and"
    " what other hit ratios, users, cores or storage would change.",
    "programs": "List and remove the programs that hotset copied to a server. The first command"
    " that needs one copies it.",
    "database": "Inspect and tune a database server: its files, memory and counters. Without --yes"
    " nothing is changed.",
}
"""Whose commands are operations, but for those of :data:`OTHERS`."""
SUBGROUPS: Mapping[str, str] = {
    "warmup schedule": "Schedule warm-ups with systemd: at set times, at boot, at shutdown.",
    "whatif trace": "Generate, convert and inspect traces: the requests that a disk got, and when.",
}
SINGLE: Mapping[str, str] = {
    "demo": "Run the demonstration that comes with hotset (`experiment run demo`).",
    "doctor": "Check what hotset needs on this computer, and say what installs it (exit code 3:"
    " something is missing).",
    "audit": "Show who changed what, when, from where, and the outcome; newest first.",
}
"""Operations of one word."""
OTHERS: Mapping[str, Mapping[str, Command]] = {
    "runs": {"alternate": alternate.alternate},
    "tier": {"watch": watch.watch},
    "lab": {"shell": shell.shell},
}
"""Commands that are no operation, as they need a terminal or never end."""


def fill(app: typer.Typer, words: Sequence[str] | None) -> None:
    """Add all commands.

    :param words: the first of the command line: only what they lead to is needed; None: all.
    """
    word = None if words is None else "".join(words[:1])
    for name, text in SINGLE.items():
        app.command(name, help=text)(_single(name) if word in (None, name) else _nothing)
    for name, text in GROUPS.items():
        group = typer.Typer(help=text, no_args_is_help=True)
        if word in (None, name):
            _fill(group, name, words or ())
        app.add_typer(group, name=name)
    app.add_typer(console.app, name="console")
    app.add_typer(jobs.app, name="jobs")
    app.command("top")(top.top)


def _fill(group: typer.Typer, word: str, words: Sequence[str]) -> None:
    from hotset.operations import table

    from .generate import add

    below: dict[str, typer.Typer] = {}
    known = table.group(word)
    called = [
        operation for operation in known if operation.words == tuple(words[: len(operation.words)])
    ]
    for operation in called or known:
        parent = " ".join(operation.words[:-1])
        if parent == word:
            add(group, operation)
            continue
        if parent not in below:
            below[parent] = typer.Typer(help=SUBGROUPS[parent], no_args_is_help=True)
            group.add_typer(below[parent], name=operation.words[-2])
        add(below[parent], operation)
    for name, command in OTHERS.get(word, {}).items():
        group.command(name)(command)


def _single(name: str) -> Command:
    from hotset.operations import table

    from .generate import command

    return command(table.find(name))


def _nothing() -> None:
    """Stands in for a command that is not the one that is called."""

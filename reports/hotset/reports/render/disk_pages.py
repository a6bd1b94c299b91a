"""The two scenarios on modelled disks as pages: what is read again (`disk reread`), and the arrays
of a published test (`disk arrays`). Each is made from the JSON of its result."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from hotset.core import words

from ..analysis import answer, caveats, headlines
from ..analysis import disks as analysis
from ..model.disks import BenchLine
from ..model.document import RunDocument
from . import configuration, vega
from .page import Page, Panel, Section, Table

Document = Mapping[str, Any]
_BEFORE, _AFTER, _OTHER = "--baseline", "--accelerated", "--all-flash"
_COLOURS = ("--time-0", "--time-1", "--time-2", "--time-3", "--time-4", "--time-5", "--time-6")


_MODELLED = "all devices are modelled"


def of_run(document: RunDocument) -> Page:
    """An experiment on modelled disks; what was not measured is left out."""
    results = document.disks
    if results is None:
        raise ValueError(f"run {document.run} is of a database")
    page = _SCENARIOS[results.scenario](results.model_dump(mode="json"))
    about = document.measurement.of if document.measurement else _MODELLED
    return replace(
        page,
        title=document.experiment.title or document.experiment.name,
        about=(f"run {document.run}", f"{document.started_at:%Y-%m-%d %H:%M} UTC", about),
        headlines=tuple(headlines.write_headlines(document)),
        document=document.model_dump(mode="json"),
        state="" if document.state == "complete" else answer.standing(document),
        judged=tuple(answer.judge(document)),
        caveats=caveats.list_caveats(document),
        setup=tuple(configuration.groups(document)),
        command=shlex.join(document.command),
    )


def of_bench(document: Document) -> Page:
    """A benchmark of a disk, file or model."""
    lines = [BenchLine.model_validate(line) for line in document["bench"]]
    return Page(
        "How fast a disk is",
        ("disk bench", _MODELLED),
        tuple(analysis.headlines(document)),
        tuple(_speeds(lines, random) for random in (False, True)) if lines else (),
        document,
        (
            "Each line shows the median of its runs, without the page cache. Runs of one"
            " measurement are no repeats of it: they follow each other within minutes.",
            *analysis.paths(document),
        ),
    )


def _speeds(lines: list[BenchLine], random: bool) -> Section:
    """Sequential lines by MB/s, random ones by requests a second."""
    mine = [line for line in lines if line.profile.startswith("RND") is random]
    kind, unit = ("random", "IOPS") if random else ("sequential", "MB/s")
    drawn = _lines(
        (
            (
                f"{line.profile} {line.direction}",
                {"value": line.median.iops if random else line.median.mb_per_s},
            )
            for line in mine
        ),
        ("median", "value", _AFTER),
    )
    rows = tuple(
        (
            f"{line.profile} {line.direction}",
            f"{line.median.mb_per_s:,.1f}",
            f"{line.median.iops:,.0f}",
            f"{line.median.latency_us:,.0f}",
            str(len(line.runs)),
        )
        for line in mine
    )
    columns = ("line", "MB/s", "IOPS", "latency µs", "runs")
    table = Table(f"Medians, {kind}", columns, rows)
    title = f"{kind.capitalize()} requests"
    return _bars(kind, title, f"Medians of {unit}.", unit, drawn, table)


def of_reread(document: Document) -> Page:
    """Gain of a hybrid disk, real and seeming."""
    disks = document["disks"]
    return Page(
        "What modelled disks gain when files are read again",
        ("disk reread", _MODELLED),
        tuple(analysis.headlines(document)),
        (
            *((_again(disks), _seeming(disks), _by_weight(disks)) if disks else ()),
            *(_draws(disk) for disk in disks),
        ),
        document,
        (
            "Ten files are read as often as a hundred tickets name them. Without the page cache"
            " each file is dropped from memory before it is read, so that the disk serves it.",
            "A benchmark that reads fresh data once shows no gain of a hybrid disk: its flash holds"
            " nothing of it yet.",
            "With the page cache every disk seems to gain: memory serves what is read again.",
            *analysis.paths(document),
        ),
    )


def _again(disks: list[Document]) -> Section:
    lines = _lines(
        ((disk["disk"], disk) for disk in disks),
        ("first", "first_mb_per_s", _BEFORE),
        ("again", "again_mb_per_s", _AFTER),
    )
    return _bars(
        "again",
        "Without the page cache: the disk itself",
        "MB/s of each file's first read, and of all later ones.",
        "MB/s",
        lines,
        Table(
            "First read and later ones",
            ("disk", "first MB/s", "again MB/s", "gain"),
            tuple(
                (
                    disk["disk"],
                    *(f"{disk[key]:,.1f}" for key in ("first_mb_per_s", "again_mb_per_s")),
                    words.factor(disk["gain"]),
                )
                for disk in disks
            ),
        ),
    )


def _seeming(disks: list[Document]) -> Section:
    lines = _lines(
        ((disk["disk"], disk) for disk in disks),
        ("the disk's own", "gain", _AFTER),
        ("with page cache", "seeming_gain", _OTHER),
    )
    rows = tuple(
        (
            disk["disk"],
            words.factor(disk["gain"]),
            words.factor(disk["seeming_gain"]),
            f"{disk['page_cache_mb_per_s']:,.0f}",
        )
        for disk in disks
    )
    return _bars(
        "seeming",
        "The trap: the page cache makes every disk look like a hybrid",
        "How many times as fast later reads are as the first one.",
        "times",
        lines,
        Table("Gain", ("disk", "own", "with page cache", "MB/s with page cache"), rows),
    )


def _by_weight(disks: list[Document]) -> Section:
    """Files that are named often, and how fast they are read on the mean."""
    rows = [
        {"arm": disk["disk"], "reads": reads, "value": mean, "what": f"file {name}"}
        for disk in disks
        for name, reads, mean in _files(disk["cold"])
    ]
    order = [disk["disk"] for disk in disks]
    draw = partial(
        vega.by_weight, rows, order, _COLOURS[: len(order)], "how often a file was drawn"
    )
    names = ", ".join(order)
    files = tuple(
        (disk["disk"], name, str(reads), f"{mean:,.1f}")
        for disk in disks
        for name, reads, mean in _files(disk["cold"])
    )
    return Section(
        "weight",
        "Mean MB/s of a file by how often it was drawn, without the page cache",
        ("A disk that keeps what it has read is the faster the more often a file is read.",),
        (Table("Files", ("disk", "file", "reads", "mean MB/s"), files, names=2),),
        (Panel("weight", draw, f"Line chart of MB/s by number of reads for {names}."),),
    )


def _files(passes: list[Document]) -> list[tuple[str, int, float]]:
    """Name, reads and mean MB/s, by number of reads."""
    speeds: dict[str, list[float]] = {}
    for draw in (draw for pass_ in passes for draw in pass_["draws"]):
        speeds.setdefault(draw["name"], []).append(draw["bytes"] / 1e6 / draw["seconds"])
    files = [(name, len(each), fmean(each)) for name, each in speeds.items()]
    return sorted(files, key=lambda file: file[1])


def _draws(disk: Document) -> Section:
    """Which layer served each pass."""
    rows = tuple(
        (
            f"pass {pass_['number'] + 1}",
            "without" if pass_["dropped"] else "with",
            pass_["served_by"],
            str(sum(draw["major_faults"] for draw in pass_["draws"])),
        )
        for pass_ in (*disk["cold"], disk["warm"])
    )
    title, columns = f"{disk['disk']}: who served the reads", ("pass", "page cache", "served by")
    table = Table(title, (*columns, "major page faults"), rows, names=3)
    return Section(f"served-{disk['disk']}", title, tables=(table,))


def of_arrays(document: Document) -> Page:
    """The published arrays beside ours, failures, and the search workload."""
    searches = document["searches"]
    lines, failures, cuts = document["lines"], document["failures"], document["cuts"]
    sections = [
        *([_publish(lines)] if lines else []),
        *([_failures(failures)] if failures else []),
        *([_searches(searches), _heat(searches)] if searches else []),
        *([_cuts(cuts)] if cuts else []),
    ]
    return Page(
        "Hard disks in a NAS, and SSDs in their place",
        ("disk arrays", _MODELLED),
        tuple(analysis.headlines(document)),
        tuple(sections),
        document,
        (
            "The published values are of a NAS with eight hard disks in RAID 5, and of six Kingston"
            " DC500M in their place (2020), measured with CrystalDiskMark 7, one request at a"
            " time.",
            "RAID F1 is RAID 5 with uneven parity, so that the members do not wear out together.",
            "Without power-loss protection a drive loses what it has answered and not yet written"
            " to its cells. What was flushed is never lost.",
            *(
                (
                    "The search has little memory for its index, and takes in new posts while it"
                    " answers. Heat tells where on the array its requests went.",
                )
                if searches
                else ()
            ),
            *analysis.paths(document),
        ),
    )


def _publish(lines: list[Document]) -> Section:
    """The table alone: its values are of three units."""
    rows = tuple(
        (
            line["array"],
            line["profile"],
            line["direction"],
            words.ABSENT if line["published"] is None else f"{line['published']:,.0f}",
            f"{line['ours']:,.0f}",
            line["unit"].replace("us", "µs"),
            words.ABSENT if line["off"] is None else words.deviation(line["off"], 0),
            line["reason"],
        )
        for line in lines
    )
    columns = ("array", "profile", "direction", "published", "ours", "unit", "off", "because")
    caption = "Beyond 15 % the reason is named."
    table = Table("Every value", columns, rows, "because", names=3)
    return Section("published", "Published and ours", (caption,), (table,))


def _failures(failures: list[Document]) -> Section:
    lines = _lines(
        ((failure["array"], failure) for failure in failures),
        ("all members", "before_iops", _BEFORE),
        ("one failing", "during_iops", _AFTER),
    )
    rows = tuple(
        (
            failure["array"],
            f"{failure['before_iops']:,.0f}",
            f"{failure['during_iops']:,.0f}",
            "later" if failure["rebuilt_s"] is None else f"{failure['rebuilt_s']:.1f} s",
        )
        for failure in failures
    )
    return _bars(
        "failures",
        "A member fails under load",
        "4 KiB random reads a second, 32 at a time; a hot spare takes the member's place.",
        "reads/s",
        lines,
        Table("Failures", ("array", "before", "while it fails", "rebuilt after"), rows),
    )


def _cuts(cuts: list[Document]) -> Section:
    """A row a file."""
    rows = tuple(
        (
            "with" if cut["protected"] else "without",
            *_cut_file(number, file),
            words.size(file["lost_bytes"]),
            words.size(file["flushed_lost_bytes"]),
        )
        for cut in cuts
        for number, file in enumerate(cut["files"], 1)
    )
    columns = ("protection", "file", "flushed", "written", "answered and lost", "flushed and lost")
    title = "The power fails under writes"
    return Section("power-cuts", title, tables=(Table(title, columns, rows),))


def _cut_file(number: int, file: Document) -> tuple[str, str, str]:
    every = file["flushed_every"]
    often = f"every {words.size(every * 4096)}" if every else "never"
    return str(number), often, words.size(file["written_bytes"])


def _searches(searches: list[Document]) -> Section:
    lines = _lines(
        ((search["array"], search["searched"]) for search in searches),
        ("p50", "p50_ms", _OTHER),
        ("p99", "p99_ms", _AFTER),
    )
    rows = tuple(
        (
            search["array"],
            *(f"{search['searched'][key]:,.1f}" for key in ("p50_ms", "p99_ms", "commit_ms")),
            f"{search['searches_per_s']:,.0f}",
            f"{search['searched']['added']:,}",
        )
        for search in searches
    )
    columns = ("array", "p50 ms", "p99 ms", "commit ms", "searches/s", "posts added")
    return _bars(
        "searches",
        "A full-text search while posts come in",
        "Milliseconds from a question to the posts that were found.",
        "ms",
        lines,
        Table("Searches", columns, rows),
    )


def _heat(searches: list[Document]) -> Section:
    """Where the requests went, array beside array."""
    rows = [
        {
            "arm": search["array"],
            "strip": place,
            "share": (read + written) / max(1, _requests(search)),
        }
        for search in searches
        for place, (read, written) in enumerate(
            zip(search["heat"]["read_strips"], search["heat"]["write_strips"], strict=True)
        )
    ]
    order = [search["array"] for search in searches]
    shares = ", ".join(
        f"{search['array']} {words.percent(search['heat']['hottest_share'], 0)}"
        for search in searches
    )
    alt = f"Heat by place. Share of the requests to the hottest tenth: {shares}."
    return Section(
        "heat",
        "Heat: where the requests of the search went",
        tables=(_search_table(searches),),
        panels=(Panel("heat", partial(vega.strips, rows, order), alt),),
        reading="A box is one part of 64 of the array; the darker, the more of its requests went"
        " there.",
    )


def _requests(search: Document) -> int:
    return int(search["heat"]["reads"] + search["heat"]["writes"])


def _search_table(searches: list[Document]) -> Table:
    rows = tuple(
        (
            search["array"],
            f"{search['heat']['reads']:,}",
            words.size(search["heat"]["read_bytes"]),
            f"{search['heat']['writes']:,}",
            words.size(search["heat"]["written_bytes"]),
            words.percent(search["heat"]["hottest_share"], 0),
        )
        for search in searches
    )
    return Table(
        "Heat: requests of the search to each array",
        ("array", "reads", "read", "writes", "written", "to the hottest tenth"),
        rows,
    )


def _lines(
    named: Iterable[tuple[str, Document]], *bars: tuple[str, str, str]
) -> list[tuple[str, float, str]]:
    """The bars of each by turns; ``bars``: label, key of the value, colour."""
    return [
        (f"{name}, {label}", values[key], colour)
        for name, values in named
        for label, key, colour in bars
    ]


def _bars(
    key: str,
    title: str,
    caption: str,
    unit: str,
    lines: list[tuple[str, float, str]],
    table: Table,
) -> Section:
    rows = [{"arm": name, "value": value, "label": _short(value)} for name, value, _ in lines]
    order = [name for name, _, _ in lines]
    draw = partial(vega.bars, rows, [], unit, order, tuple(colour for _, _, colour in lines))
    values = words.enumerate_words([f"{name} {_short(value)} {unit}" for name, value, _ in lines])
    return Section(key, title, (caption,), (table,), (Panel(key, draw, f"Bar chart: {values}."),))


def _short(value: float) -> str:
    """
    >>> _short(2.04), _short(66593.1)
    ('2.0', '66,593')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


_SCENARIOS: Mapping[str, Callable[[Document], Page]] = {
    "reread": of_reread,
    "arrays": of_arrays,
    "bench": of_bench,
}
PAGES: Mapping[str, Callable[[Document], Page]] = {
    "disk reread": of_reread,
    "disk arrays": of_arrays,
}
"""By the operation whose result it is."""

"""How the generated cmdlets' objects are shown: a table, or a list where there is but one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any
from xml.sax.saxutils import escape

from . import cmdlets
from .cmdlets import Cmdlet, pascal

BY_HAND = frozenset(("RunDocument", "TpccRun"))
"""Types whose views are in Hotset.format.ps1xml."""
_COLUMNS = 9
_SCREEN = 100
"""Letters a line: what does not fit is left out of the table, and is a property all the same."""
_SERVER = 12
_TEXT_MIN = 10
"""A text column that would be narrower shows nothing."""
_TEXT_NARROW = 13
"""How far a text column is narrowed for the sake of a small screen."""
_BYTES = {
    "fits": "Fits GiB",
    "left_out": "Left out GiB",
    "resident": "Cached GiB",
    "to_fetch": "To fetch GiB",
}
"""Sizes whose names do not say so, as columns."""
_LABELS = {
    "bypassed": "Bypassed",
    "ci_high": "High",
    "ci_low": "Low",
    "hit_ratio": "Hit ratio",
    "read_hit_ratio": "Read hits",
    "speed_ratio": "Ratio",
    "started_at": "Started",
    "value_against": "Before",
    "write_hit_ratio": "Write hits",
}
_NARROW = (79, 80)
"""Where a column and the blank behind it end on a screen of 80: the next one is left out then,
and not squeezed into the rest."""
_COUNTS = {"reads": 11, "writes": 11, "value": 11, "value_against": 11}
_TEXT_WIDTHS = {
    "disk": 13,
    "guarantee": 9,
    "kind": 9,
    "limit": 9,
    "mode": 12,
    "preference": 10,
    "run": 22,
    "state": 9,
    "unit": 6,
    "verdict": 18,
}
_SHOWN = {
    "Hotset.Comparison": (
        "verdict",
        "run",
        "arm",
        "value_against",
        "value",
        "speed_ratio",
        "ci_low",
        "ci_high",
    ),
    "Hotset.Disk": (
        "disk",
        "state",
        "mode",
        "cache_bytes",
        "used_bytes",
        "dirty_bytes",
        "read_hit_ratio",
        "write_hit_ratio",
    ),
    "Hotset.HitRatio": (
        "disk",
        "name",
        "hit_ratio",
        "read_hit_ratio",
        "write_hit_ratio",
        "reads",
        "writes",
    ),
    "Hotset.Run": (
        "run",
        "state",
        "started_at",
        "experiment",
        "value",
        "unit",
        "factor",
        "significant",
    ),
    "Hotset.WarmupPlan": (
        "target",
        "bytes",
        "fits",
        "resident",
        "to_fetch",
        "left_out",
        "expected_s",
    ),
    "Hotset.Audit": ("at", "who", "what", "outcome", "why"),
    "Hotset.DiskModel": (
        "name",
        "title",
        "iops_qd1",
        "iops_qd32",
        "read_mb_per_s",
        "write_mb_per_s",
    ),
    "Hotset.Prediction": (
        "hit_ratio",
        "nopm",
        "nopm_low",
        "nopm_high",
        "factor",
        "response_ms",
        "most_time",
    ),
    "Hotset.WarmupRun": (
        "method",
        "bytes",
        "seconds",
        "mb_per_s",
        "origin_mb_per_s",
        "total_seconds",
        "sampled_blocks",
        "differing_blocks",
        "cached_share",
        "left_out_bytes",
        "job",
    ),
    "Hotset.Warmup": ("job", "state", "disk", "method", "bytes", "targets"),
}
"""Columns, where they are not simply the first ones."""
_SCRIPTS = {
    "Hotset.DiskSpeed": {
        "MB/s": "'{0:N1}' -f ($_.Runs | Measure-Object -Property MbPerS -Average).Average",
        "IOPS": "'{0:N0}' -f ($_.Runs | Measure-Object -Property Iops -Average).Average",
        "Latency us": "'{0:N1}' -f ($_.Runs | Measure-Object -Property LatencyUs -Average).Average",
    },
    "Hotset.DiskRaffle": {"Draws": "@($_.Draws).Count"},
    "Hotset.Flash": {"Disks": "@($_.Disks | ForEach-Object { $_.Disk }) -join ', '"},
    "Hotset.Database": {
        "Product": '"$($_.Version.Product) $($_.Version.Version)"',
        "Databases": "$_.Databases -join ', '",
        "Files": "@($_.Files).Count",
        "Cap GiB": "if ($null -ne $_.Memory.Cap) { '{0:N2}' -f ($_.Memory.Cap / 1GB) }",
    },
    "Hotset.DatabaseCounters": {
        "Files": "@($_.Files).Count",
        "Most waited for": "@($_.Waits | Sort-Object WaitMs -Descending | Select-Object -First 3 |"
        " ForEach-Object { $_.Name }) -join ', '",
    },
    "Hotset.Lab": {"Processes": "@($_.Processes | ForEach-Object { $_.Name }) -join ', '"},
    "Hotset.TpchCheck": {
        "Tables": "@($_.Tables).Count",
        "Rows missing": "@($_.Tables | Where-Object { $_.Rows -ne $_.Expected } |"
        " ForEach-Object { $_.Name }) -join ', '",
    },
}
"""Properties computed from the lists in an object."""
_OWN_FORMATS = {"speed_ratio": "{0:N2}"}
_FORMATS = {"0-1": "{0:P1}", "s": "{0:N1}", "ms": "{0:N1}", "MB/s": "{0:N1}", "us": "{0:N1}"}


def xml(every: Sequence[Cmdlet]) -> str:
    """The file of all generated views."""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<!-- Generated from the table of operations: `make build` makes it again. -->",
        "<Configuration>",
        "  <ViewDefinitions>",
    ]
    done = set(BY_HAND)
    for cmdlet in every:
        name = cmdlet.type.removeprefix("Hotset.")
        if name and name not in done:
            done.add(name)
            lines += [f"    {line}" for line in _view(cmdlet)]
    return "\n".join([*lines, "  </ViewDefinitions>", "</Configuration>"]) + "\n"


def _view(cmdlet: Cmdlet) -> Iterator[str]:
    yield "<View>"
    yield f"  <Name>{cmdlet.type}</Name>"
    yield f"  <ViewSelectedBy><TypeName>{cmdlet.type}</TypeName></ViewSelectedBy>"
    body = _table(cmdlet) if cmdlet.items else _list(cmdlet)
    yield from (f"  {line}" for line in body)
    yield "</View>"


def columns(cmdlet: Cmdlet) -> list[tuple[str, dict[str, Any]]]:
    """The properties that are shown, with their schemas: single values only."""
    schema = cmdlets.schema(cmdlet)
    single = {
        name: _without_null(about, schema["$defs"])
        for name, about in schema["properties"].items()
        if name != "schema_version"
    }
    single = {
        name: about
        for name, about in single.items()
        if about.get("type") in ("string", "integer", "number", "boolean") or "enum" in about
    }
    # What holds or does not is what one looks for.
    verdicts = [name for name, about in single.items() if about.get("type") == "boolean"]
    first = sorted(single, key=lambda name: name not in verdicts) if cmdlet.items else list(single)
    names = _SHOWN.get(cmdlet.type) or first[:_COLUMNS]
    return [(name, single[name]) for name in names]


def _widths(shown: list[tuple[str, dict[str, Any]]], more: Sequence[str]) -> list[int | None]:
    """How wide each column is, beside the server's: fixed, so that rows are shown as they come.

    A text in the last column has what is left; None.

    :param more: labels of what is computed.
    """
    widths: list[int | None] = [_width(name, about) for name, about in shown]
    widths += [max(len(label), 12) for label in more]
    while widths.count(None) and _share(widths) < _TEXT_MIN and len(widths) > 2:
        widths.pop()
    last = [None] if widths and widths[-1] is None else []
    share = _share(widths)
    tried = [
        _sharing(widths, letters) for letters in range(share, min(share, _TEXT_NARROW) - 1, -1)
    ]
    fitting = (each for each in tried if set(_NARROW) & set(accumulate(each, initial=_SERVER + 1)))
    shared = next(fitting, tried[0])
    return [width - 1 for width in shared[: len(shared) - len(last)]] + last


def _sharing(widths: Sequence[int | None], share: int) -> list[int]:
    """The columns, with the blanks behind them, where each text has this share."""
    return [(share if width is None else width) + 1 for width in widths]


def _share(widths: Sequence[int | None]) -> int:
    """Return the letters that a text gets of a line, after the others and a blank behind each."""
    taken = _SERVER + sum(width or 0 for width in widths) + len(widths)
    return (_SCREEN - taken) // max(1, sum(width is None for width in widths))


def _width(name: str, about: dict[str, Any]) -> int | None:
    label = _label_of(name, about) or pascal(name)
    if about.get("type") in ("integer", "number", "boolean"):
        return max(
            len(label),
            {"boolean": 5, "integer": 8, "number": 8}[about["type"]],
            _COUNTS.get(name, 0),
        )
    if name in ("at", "started", "ended") or name.endswith("_at"):
        return 19
    return max(len(label), _TEXT_WIDTHS[name]) if name in _TEXT_WIDTHS else None


def _without_null(about: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in about.get("anyOf", [about]) if kind != {"type": "null"}]
    # A size may be a number or a text, such as "unlimited".
    inner = cmdlets.resolve(kinds[0], definitions)
    return {**inner, **{"x-unit": about["x-unit"]}} if "x-unit" in about else inner


def _table(cmdlet: Cmdlet) -> Iterator[str]:
    shown = columns(cmdlet)
    scripts = _SCRIPTS.get(cmdlet.type, {})
    widths = _widths(shown, list(scripts))
    shown = shown[: len(widths)]
    scripts = dict(list(scripts.items())[: len(widths) - len(shown)])
    yield "<TableControl>"
    yield "  <TableHeaders>"
    yield f"    <TableColumnHeader><Width>{_SERVER}</Width></TableColumnHeader>"
    for (name, about), width in zip(shown, widths, strict=False):
        yield f"    {_head(name, about, width)}"
    for label, width in zip(scripts, widths[len(shown) :], strict=True):
        head = f"<Label>{label}</Label><Width>{width}</Width>"
        yield f"    <TableColumnHeader>{head}</TableColumnHeader>"
    yield "  </TableHeaders>"
    yield "  <TableRowEntries><TableRowEntry><TableColumnItems>"
    # The first, as in dbatools: the same disk may be on several servers.
    yield "    <TableColumnItem><PropertyName>Server</PropertyName></TableColumnItem>"
    for name, about in shown:
        yield f"    <TableColumnItem>{_value(name, about)}</TableColumnItem>"
    for script in scripts.values():
        yield f"    <TableColumnItem><ScriptBlock>{escape(script)}</ScriptBlock></TableColumnItem>"
    yield "  </TableColumnItems></TableRowEntry></TableRowEntries>"
    yield "</TableControl>"


def _list(cmdlet: Cmdlet) -> Iterator[str]:
    yield "<ListControl><ListEntries><ListEntry><ListItems>"
    for name, about in columns(cmdlet):
        yield f"  <ListItem>{_label(name, about)}{_value(name, about)}</ListItem>"
    for label, script in _SCRIPTS.get(cmdlet.type, {}).items():
        value = f"<ScriptBlock>{escape(script)}</ScriptBlock>"
        yield f"  <ListItem><Label>{label}</Label>{value}</ListItem>"
    yield "</ListItems></ListEntry></ListEntries></ListControl>"


def _head(name: str, about: dict[str, Any], width: int | None) -> str:
    is_number = about.get("type") in ("integer", "number")
    label = _label(name, about)
    alignment = "<Alignment>Right</Alignment>" if is_number else ""
    inner = label + ("" if width is None else f"<Width>{width}</Width>") + alignment
    return f"<TableColumnHeader>{inner}</TableColumnHeader>" if inner else "<TableColumnHeader/>"


def _label(name: str, about: dict[str, Any]) -> str:
    label = _label_of(name, about)
    return f"<Label>{label}</Label>" if label else ""


def _label_of(name: str, about: dict[str, Any]) -> str:
    """Label a size, which is shown in GiB, and what has a long name; others keep their own."""
    if name in _BYTES or name in _LABELS:
        return _BYTES.get(name) or _LABELS[name]
    if about.get("x-unit") != "bytes":
        return ""
    words = pascal(name.removesuffix("_bytes")) if name != "bytes" else "Size"
    return f"{words} GiB"


def _value(name: str, about: dict[str, Any]) -> str:
    shown = pascal(name)
    if about.get("x-unit") == "bytes" or name in _BYTES:
        script = f"if ($null -ne $_.{shown}) {{ '{{0:N2}}' -f ($_.{shown} / 1GB) }}"
        return f"<ScriptBlock>{script}</ScriptBlock>"
    text = f"<PropertyName>{shown}</PropertyName>"
    if about.get("type") in ("integer", "number"):
        default = "{0:N0}" if about["type"] == "integer" else "{0:N2}"
        form = _OWN_FORMATS.get(name) or _FORMATS.get(
            str(about.get("x-unit")).replace("µ", "u"), default
        )
        text += f"<FormatString>{form}</FormatString>"
    return text

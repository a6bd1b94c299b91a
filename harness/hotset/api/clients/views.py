"""How the generated cmdlets' objects are shown: a table, or a list where there is but one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape

from . import cmdlets
from .cmdlets import Cmdlet, pascal

BY_HAND = frozenset(
    ("Comparison", "Disk", "HitRatio", "Run", "RunDocument", "TpccRun", "TpchRun", "WarmupPlan")
)
"""Types whose views are in Hotset.format.ps1xml."""
_COLUMNS = 9
_SHOWN = {
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
        "MB/s": "'{0:N1}' -f ($_.Samples | Measure-Object -Property MbPerS -Average).Average",
        "IOPS": "'{0:N0}' -f ($_.Samples | Measure-Object -Property Iops -Average).Average",
        "Latency us": "'{0:N1}' -f"
        " ($_.Samples | Measure-Object -Property LatencyUs -Average).Average",
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
    names = _SHOWN.get(cmdlet.type) or list(single)[:_COLUMNS]
    return [(name, single[name]) for name in names]


def _without_null(about: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in about.get("anyOf", [about]) if kind != {"type": "null"}]
    # A size may be a number or a text, such as "unlimited".
    inner = cmdlets.resolve(kinds[0], definitions)
    return {**inner, **{"x-unit": about["x-unit"]}} if "x-unit" in about else inner


def _table(cmdlet: Cmdlet) -> Iterator[str]:
    shown = columns(cmdlet)
    scripts = _SCRIPTS.get(cmdlet.type, {})
    yield "<TableControl>"
    yield "  <AutoSize/>"
    yield "  <TableHeaders>"
    yield "    <TableColumnHeader/>"
    for name, about in shown:
        yield f"    {_head(name, about)}"
    for label in scripts:
        yield f"    <TableColumnHeader><Label>{label}</Label></TableColumnHeader>"
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


def _head(name: str, about: dict[str, Any]) -> str:
    is_number = about.get("type") in ("integer", "number")
    label = _label(name, about)
    alignment = "<Alignment>Right</Alignment>" if is_number else ""
    inner = label + alignment
    return f"<TableColumnHeader>{inner}</TableColumnHeader>" if inner else "<TableColumnHeader/>"


def _label(name: str, about: dict[str, Any]) -> str:
    """Label a size, which is shown in GiB; other properties keep their own names."""
    if about.get("x-unit") != "bytes":
        return ""
    words = pascal(name.removesuffix("_bytes")) if name != "bytes" else "Size"
    return f"<Label>{words} GiB</Label>"


def _value(name: str, about: dict[str, Any]) -> str:
    shown = pascal(name)
    if about.get("x-unit") == "bytes":
        script = f"if ($null -ne $_.{shown}) {{ '{{0:N2}}' -f ($_.{shown} / 1GB) }}"
        return f"<ScriptBlock>{script}</ScriptBlock>"
    text = f"<PropertyName>{shown}</PropertyName>"
    if about.get("type") in ("integer", "number"):
        default = "{0:N0}" if about["type"] == "integer" else "{0:N2}"
        form = _FORMATS.get(str(about.get("x-unit")).replace("µ", "u"), default)
        text += f"<FormatString>{form}</FormatString>"
    return text

"""The commands of the bash script: one for each operation, under its cmdlet's name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hotset.core.operation import FieldKind

from .cmdlets import BY_HAND, STARTS, Cmdlet, twin_name

_MARKS = (
    "# Generated from the table of operations (make docs): {}\n",
    "# End of what is generated\n",
)
_LISTED = "runs list"
"""Its command is by hand: it lists the runs, or shows one."""


def with_commands(text: str, every: Sequence[Cmdlet]) -> str:
    """The script with its generated parts: what it says of itself, the commands' names by
    operation, and its table."""
    parts = {"usage": _usage(every), "names": _names(every), "commands": _table(every)}
    for what, made in parts.items():
        begin, end = _MARKS[0].format(what), _MARKS[1]
        text, count = re.subn(
            rf"({re.escape(begin)}).*?(?=^{re.escape(end)})",
            lambda found, made=made: found.group(1) + made,  # type: ignore[misc]
            text,
            flags=re.MULTILINE | re.DOTALL,
        )
        assert count == 1, what
    return text


def fields(cmdlet: Cmdlet) -> list[str]:
    """List the fields as the script's `collect` takes them, the argument first: text, number#,
    flag?, list+, numbers%."""
    operation = cmdlet.operation
    known = dict(operation.fields)
    if "runs" in known and cmdlet.path.endswith("/compare"):
        known = {"run": known.pop("runs"), **known}
    named = [parameter.field for parameter in cmdlet.parameters if parameter.field in known]
    named += [name for name in cmdlet.values if name in known and name not in named]
    first = [
        parameter.field
        for parameter in cmdlet.parameters
        if parameter.position == 0 and parameter.field in known
    ]
    ordered = [*first, *(name for name in named if name not in first)]
    found = []
    for name in ordered:
        kind = FieldKind.from_field(known[name])
        mark = "+" if kind.is_list else "?" if kind.base is bool else ""
        if kind.base in (int, float):
            mark = "%" if kind.is_list else "#"
        found.append(f"{name}{mark}")
    return found


def _usage(every: Sequence[Cmdlet]) -> str:
    lines = []
    for one in every:
        if one.operation.name == _LISTED or one.raw:
            continue
        lines.append("#   " + _call(one))
    return "\n".join(lines) + "\n"


def _call(cmdlet: Cmdlet) -> str:
    names = [twin_name(cmdlet.name)] + ([twin_name(cmdlet.alias)] if cmdlet.alias else [])
    first = next((parameter for parameter in cmdlet.parameters if parameter.position == 0), None)
    shown = ""
    if first is not None:
        word = first.name.upper() + ("..." if first.gathered else "")
        shown = f" {word}" if first.mandatory else f" [{word}]"
    return f"{' | '.join(names)}{shown}"


_JOBS = {"jobs cancel": "stop-job", "jobs list": "get-job", "jobs show": "get-job"}


def _names(every: Sequence[Cmdlet]) -> str:
    names = _JOBS | {one.operation.name: twin_name(one.name) for one in every}
    lines = [f'    "{name}": "{twin}"' for name, twin in names.items()]
    return "COMMANDS='{\n" + ",\n".join(lines) + "\n}'\n"


def _table(every: Sequence[Cmdlet]) -> str:
    return "\n".join(line for one in every for line in _entry(one)) + "\n"


def _entry(cmdlet: Cmdlet) -> Iterator[str]:
    if cmdlet.operation.name == _LISTED or cmdlet.raw:
        return
    names = [twin_name(cmdlet.name)] + ([twin_name(cmdlet.alias)] if cmdlet.alias else [])
    yield f"    {' | '.join(names)})"
    waits = cmdlet.job and cmdlet.operation.name != STARTS
    path = cmdlet.path.removeprefix("/api/v1")
    words = [
        "finish" if waits else "call",
        cmdlet.method.upper(),
        f"'{path}'",
        *fields(cmdlet),
        "--",
        '"$@"',
    ]
    line = "       "
    for word in words:
        if len(line) + len(word) > 96:
            yield line + " \\"
            line = "           "
        line += f" {word}"
    yield line if waits else f"{line} | jq ."
    yield "        ;;"


__all__ = ["BY_HAND", "fields", "with_commands"]

"""The operations' own texts in PowerShell's words: cmdlets for commands, parameters for options.

They are plain ASCII, which Windows PowerShell 5.1 reads as it is meant.
"""

from __future__ import annotations

import re
import textwrap

from hotset.core.operation import FieldKind, Kind, Operation
from hotset.operations import table

CONNECTION = (
    "The servers to use, one or several: objects of Connect-Hotset or Get-HotsetConnection, or"
    " addresses. By default the server that you connected to last."
)
WAIT = (
    "Goes on with what was counted since the line before, until Ctrl-C, like Get-Content -Wait."
    " Each reading is marked, as by -Mark."
)
REFERENCE = "The run that the others are measured against."
NAMED_RUN = (
    "A run's id, the beginning of one, or last: it comes with everything that it measured. With a"
    " star (2026*) the list of those it fits. The list of all if left out."
)
AS_JOB = "Returns the job at once instead of waiting for it."
WITH_RESULT = "Returns what was changed, as it is then."
CREDENTIAL = "The database's user and password. The password is sent in the request's body only."
_MACHINE = (
    "Where the disks are, if not on the hotset server itself: vm (the lab that runs there), or"
    " ssh://[USER@]HOST[:PORT]."
)
_DSN = (
    "The database as the hotset server reaches it, such as sqlserver://db1/shop?trust=yes or"
    " postgresql://db1:5432/shop. No password: that is -Credential's."
)
_ENGINE = "The database product. By default taken from -Dsn."
_TEXTS = {
    ("tpcc run", "check"): "Does not check the twelve consistency conditions afterwards.",
    ("tier create", "reserve"): "Lets other hosts write to the origin.",
    ("tpcc run", "threshold"): "What the run must reach, such as 'nopm>=50000' or"
    " 'p95(new_order)<20ms': the job fails if it does not.",
    ("tpcc run", "users"): "Number of virtual users. A rising list, such as 1, 2, 4, 8, measures a"
    " curve, with a window for each number.",
    ("sql run", "script"): "SQL files on the hotset server, in a folder that its remote.toml"
    " allows, with their weights, such as /srv/sql/checkout.sql@70.",
    ("sql run", "threshold"): "What the run must reach, such as 'tps>=500' or"
    " 'p95(checkout)<20ms': the job fails if it does not.",
    ("sql run", "users"): "Number of virtual users. A rising list, such as 1, 2, 4, 8, measures a"
    " curve, with a window for each number.",
    ("tpch run", "threshold"): "What the run must reach, such as 'queries<60s': the job fails if it"
    " does not.",
    ("disk bench", "threshold"): "What the disk must reach, such as"
    " 'mb_per_s(seq1m-q8t1-read)>=500': the job fails if it does not.",
    ("disk bench", "against"): "A saved result, a JSON file on the hotset server, to compare with.",
    ("warmup snapshot", "output"): "The file to write, on the hotset server.",
    ("tier explain", "name"): "A file on the disk, or a table (with -Dsn).",
    ("runs rm", "run"): "A run's whole id.",
    ("runs compare", "runs"): "The runs to compare: ids, or objects of Get-HotsetRun.",
    ("warmup schedule add", "targets"): "What to cache at the times of -At, as for"
    " Start-HotsetWarmup.",
}
_ROWS = "the tables that hotset made there are dropped with all their rows"
_LOSSES = {
    "disk bench": {"-not $ReadOnly": "what is on the target is overwritten"},
    "disk power-cut": {"": "what the disk holds in memory only is lost"},
    "runs rm": {"": "all that it measured is lost"},
    "sql run": {"": "the scripts change whatever they change"},
    "tier create": {"": "what is on the flash is erased"},
    "tier deactivate": {"": "the disk goes away for its users"},
    "tier detach": {
        "": "the cache is given up once what is dirty is written back",
        "$FlashIsDead": "what was not written back is lost",
    },
    "tpcc build": {"$Replace": _ROWS},
    "tpcc drop": {"": _ROWS},
    "tpch build": {"$Replace": _ROWS},
    "tpch drop": {"": _ROWS},
    "warmup schedule remove": {"": "it does not run any more"},
}
_TARGETS = (
    " A full path of a file or folder on the disk, database:NAME, on PostgreSQL table:NAME and"
    " index:NAME (these with -Dsn), region:OFFSET+LENGTH, heat, or snapshot:FILE. The"
    " pipeline also takes objects with SqlInstance and Name, such as those of Get-DbaDatabase."
)
_ASCII = {
    "…": "...",
    "×": "x",
    "–": "-",
    "’": "'",
    "µ": "u",
    "≥": ">=",
    "≤": "<=",
    "“": '"',
    "”": '"',
}
_QUOTED = re.compile(r"`([^`]+)`|\bhotset ([a-z]+ [a-z-]+)\b")


def parameter(operation: Operation, name: str, text: str) -> str:
    """The help of a parameter."""
    if (operation.name, name) in _TEXTS:
        return _TEXTS[operation.name, name]
    kind = FieldKind.from_field(operation.fields[name])
    if name == "machine" and "ssh://" in str(operation.fields[name].metadata):
        return _MACHINE
    if name == "dsn" and "password" in operation.fields:
        return _DSN
    if name == "engine":
        return _ENGINE if "password" in operation.fields else "The database product."
    sentence = plain(text.replace(" Repeatable.", "").replace(" Repeatable;", " It is"))
    if name == "targets" and operation.name in ("warmup run", "warmup plan"):
        sentence += _TARGETS
    default = operation.fields[name].default
    if (
        kind.base is not bool
        and default not in (None, "", [])
        and not operation.fields[name].is_required()
    ):
        sentence += (
            f" Default: {default:g}." if isinstance(default, float) else f" Default: {default}."
        )
    return sentence


def inputs(name: str) -> str:
    """The objects that a cmdlet takes from the pipeline for this parameter."""
    return f"System.String, or objects with the property {name}: -{name}"


def summary(operation: Operation) -> str:
    """The first line of its help."""
    first = operation.help.partition("\n\n")[0]
    return _sentences(first, first.partition(";")[0] + ".")


def action(operation: Operation) -> str:
    """Name what a question is about, within PowerShell's quotes."""
    return summary(operation).partition(". ")[0].rstrip(".").replace("'", "''")


def losses(operation: Operation) -> dict[str, str]:
    """Map what has to be given to what is lost then, as a question says it; empty: in any case."""
    lost = dict(_LOSSES.get(operation.name, {}))
    if "force" in operation.fields and "output" in operation.fields:
        lost["$Force"] = "a file that is there is overwritten"
    return lost


def description(operation: Operation) -> str:
    """Compose the rest of its help: details, how it runs, and the right it needs."""
    parts = [_sentences(paragraph, "") for paragraph in operation.help.split("\n\n")[1:]]
    if operation.kind is Kind.JOB:
        parts.append(
            "It runs as a job on the server, which continues when this session ends."
            + (
                " The job is returned at once: Wait-HotsetJob waits for it."
                if operation.name == "warmup run"
                else (
                    " The cmdlet waits for it with a progress bar; Ctrl-C only stops the waiting."
                )
            )
        )
    if "dry_run" in operation.fields:
        parts.append("With -WhatIf the server says what it would do, and that is returned as text.")
    asks = operation.destroys or operation.needs_yes
    if asks and operation.right.value != "read":
        parts.append("It asks for confirmation first; in a script use -Confirm:$false.")
    parts.append(
        f"The token needs the right '{operation.right.value}'. On the server's own command line"
        " this is"
        f' "hotset {operation.name}".'
    )
    return "\n\n".join(part for part in parts if part)


def plain(text: str) -> str:
    """A text of the command line in PowerShell's words.

    >>> plain("as for `warmup run`, with --on-boot")
    'as for Start-HotsetWarmup, with -OnBoot'
    """
    worded = _QUOTED.sub(lambda match: _cmdlet(match.group(1) or match.group(0)), text)
    worded = re.sub(
        r"--([a-z]+(?:-[a-z]+)*)",
        lambda match: "-" + "".join(word.capitalize() for word in match.group(1).split("-")),
        worded,
    )
    for sign, letters in _ASCII.items():
        worded = worded.replace(sign, letters)
    return worded


def wrap(text: str, indent: str, width: int = 100) -> list[str]:
    """Lines of a comment."""
    lines: list[str] = []
    for part in text.split("\n\n"):
        lines += [
            *([""] if lines else []),
            *textwrap.wrap(
                part, width - len(indent), break_long_words=False, break_on_hyphens=False
            ),
        ]
    return [f"{indent}{line}".rstrip() for line in lines]


def _cmdlet(words: str) -> str:
    """The cmdlet of a command that a text names, and what follows it."""
    given = words.removeprefix("hotset ").split()
    for group in ("", "warmup "):
        for length in range(len(given), 0, -1):
            name = group + " ".join(given[:length])
            cmdlet = _operations().get(name)
            if cmdlet is not None:
                return " ".join([cmdlet, *given[length:]])
    return words


def _operations() -> dict[str, str]:
    return {operation.name: "-".join(operation.powershell) for operation in table.every()}


def _sentences(text: str, instead: str) -> str:
    """Without what is about the command line only.

    :param instead: where nothing else is said.
    """
    parts = re.split(r"(?<=[.?:]) (?=[A-Z])", " ".join(text.split()))
    kept = [part for part in parts if not re.search(r"[Ee]xit code|\bCSV\b|same as `run", part)]
    return plain(" ".join(kept) or instead)

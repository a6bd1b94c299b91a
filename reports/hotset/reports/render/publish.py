"""A run as a published reference: its figures, its report, what made it and where."""

from __future__ import annotations

import shlex
from pathlib import Path

from hotset.core.errors import RequestError

from ..analysis import caveats, headlines
from ..model.document import RunDocument
from . import configuration, markdown


class NotPublishable(RequestError):
    """Nobody could repeat it, or it did not finish; the text says which."""


def write(document: RunDocument, folder: Path) -> Path:
    """Write `README.md`, `report.md` and `result.json` into a folder named after the run.

    :raises NotPublishable: the run is not complete, or its command is not recorded.
    """
    if document.state != "complete":
        raise NotPublishable(f"run {document.run} is {document.state}: publish a complete one")
    if not document.command:
        raise NotPublishable(
            f"run {document.run} does not record its command (it is from an older hotset):"
            " run it again"
        )
    target = folder / document.run
    target.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("README.md", _readme(document)),
        ("report.md", markdown.render(document)),
        ("result.json", document.model_dump_json(indent=1) + "\n"),
    ):
        (target / name).write_text(text, encoding="utf-8")
    return target


def _readme(document: RunDocument) -> str:
    """The answer, how to repeat it, the machine, and what limits it."""
    groups = dict(configuration.groups(document))
    # Of a measurement nobody set up a machine: it has what was found.
    place = next(name for name in ("Machine", "Database", "Tier") if name in groups)
    parts = [
        f"# {document.experiment.title or document.experiment.name}",
        f"Run `{document.run}`, {document.started_at:%Y-%m-%d %H:%M} UTC, hotset"
        f" {document.hotset_version}. [Report](report.md), [all figures](result.json).",
        *(f"**{sentence}**" for sentence in headlines.write_headlines(document)),
        f"```\n{shlex.join(document.command)}\n```",
        markdown.table((place, ""), groups[place]),
        markdown.bullets(caveat.text for caveat in caveats.list_caveats(document)),
    ]
    return "\n\n".join(parts) + "\n"

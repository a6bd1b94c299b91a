"""The answers of a run in a sentence each, what it is about first."""

from __future__ import annotations

from ..model.document import RunDocument
from . import answer, disks, measured, power
from .comparison import highest, policies


def write_headlines(document: RunDocument) -> list[str]:
    """Many users, the rate that meets the limits, the 22 queries, or modelled disks: what the
    experiment has."""
    if document.disks is not None:
        return disks.headlines(document.disks.model_dump()) or [disks.NOTHING]
    if document.measurement is not None:
        return [
            headline
            for headline in (highest.headline(document), measured.headline(document))
            if headline
        ]
    sentences = (
        answer.headline(document),
        policies.headline(document),
        highest.headline(document),
        power.headline(document),
    )
    return [sentence for sentence in sentences if sentence]

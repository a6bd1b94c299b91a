"""A run as one HTML page that needs no network: figures, charts, tables, style and script inside.

The page forbids itself the network (Content-Security-Policy), and runs no script but its own two,
which it names by their hashes.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

import vl_convert
from altair.utils import schemapi
from jinja2 import Environment, PackageLoader, StrictUndefined

from hotset.core import words
from hotset.core.record import SCHEMA_VERSION

from ..analysis import answer, units
from ..analysis import measured as of_measurement
from ..analysis.answer import ArmFigures
from ..model.base import ArmName
from ..model.document import POLICY_ARMS, RunDocument
from . import sections
from .page import Page

# It would check each part of a chart against its schema again and again, half of the time that a
# report takes; the tests compile every chart.
schemapi.disable_debug_mode()

ROLES: dict[ArmName, tuple[str, str]] = {
    "baseline": ("Before", "slow storage alone"),
    "split-disks": ("Alternative", "files spread over several slow disks"),
    "in-memory": ("Alternative", "the whole database in memory"),
    "flash-volume": ("Alternative", "only log and temporary space on flash"),
    "accelerated": ("After", "flash cache in front"),
    **{name: ("Policy", f"flash cache with the policy {name}") for name in POLICY_ARMS},
    "all-flash": ("Ceiling", "everything on flash"),
    "measured": ("Measured", "the database as it was found"),
}


ALWAYS_SHOWN: tuple[ArmName, ...] = ("baseline", "accelerated", "all-flash")
# What the page's own script uses of the chart libraries.
LIBRARIES_TO_WINDOW = "window.vegaEmbed = vegaEmbed;"

NO_BREAK_SPACE, WORD_JOINER = "\u00a0", "\u2060"


_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    " form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class Card:
    """One arm's big figure; `arm` is None where it was not measured."""

    name: ArmName
    role: str
    meaning: str
    arm: ArmFigures | None


def render(document: RunDocument) -> str:
    """The whole page."""
    page = sections.page_of(document)
    return render_page(page) if document.disks is not None else render_page(page, document)


def render_page(page: Page, run: RunDocument | None = None) -> str:
    """
    :param run: of a database, whose answer is in figures above all else.
    """
    libraries, own = _libraries(), _resource("report.js")
    panels = (panel for section in page.sections for panel in section.panels)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            headlines=[_unbroken(headline) for headline in page.headlines],
            conditions=page.conditions,
            run=run,
            **(_answer(run) if run else {"factor": None}),
            specs={panel.key: panel.draw() for panel in panels},
            schema_version=SCHEMA_VERSION,
            style=_resource("report.css"),
            libraries=libraries,
            script=own,
            policy=f"{_POLICY}; script-src {_hash(libraries)} {_hash(own)}",
        )
    )


def _answer(document: RunDocument) -> dict[str, object]:
    """Source of the answer's figures."""
    measured = {arm.name: arm for arm in answer.arms(document)}
    factor = document.factor()
    return {
        "factor": factor,
        "no_interval": answer.repeats(document),
        "ceiling_interval": factor and answer.ceiling_interval(factor),
        "cards": _cards(document, measured),
        "arms": measured,
        "here": of_measurement.hit_ratio(document),
        "hit_ratio_denominator": answer.HIT_RATIO_DENOMINATOR,
        "unit": units.find_unit(document),
        "spec_text": json.dumps(document.experiment.spec, indent=2, ensure_ascii=False),
        "words": words,
    }


def _cards(document: RunDocument, measured: Mapping[ArmName, ArmFigures]) -> list[Card]:
    always = ALWAYS_SHOWN if document.measurement is None else ()
    return [
        Card(name, *role, measured.get(name))
        for name, role in ROLES.items()
        if name in measured or name in always
    ]


def _unbroken(text: str) -> str:
    """Keep what is in brackets up to a semicolon, and a number and its sign, stay on one line."""
    inside = re.sub(r"\(.*?[;)]", lambda match: match[0].replace(" ", NO_BREAK_SPACE), text)
    return inside.replace(" %", f"{NO_BREAK_SPACE}%").replace("–", f"–{WORD_JOINER}")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("hotset.reports.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _libraries() -> str:
    """Vega, Vega-Lite and their embedding, once for the page."""
    bundle: str = vl_convert.javascript_bundle(LIBRARIES_TO_WINDOW)
    if "</script" in bundle.lower() or "\r" in bundle:
        raise ValueError("the chart library cannot be put inside a page as it is")
    return bundle


@cache
def _resource(name: str) -> str:
    return (files("hotset.reports.render") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"

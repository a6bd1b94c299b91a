from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from hotset.core import words
from hotset.reports.analysis import answer, caveats, headlines
from hotset.reports.model.document import RunDocument
from hotset.reports.render import configuration, html, sections
from tests import documents

RUNS = {
    "complete": documents.complete,
    "queries": documents.with_queries,
    "curve": documents.with_curve,
    "policies": documents.with_policies,
    "sql": documents.with_sql,
    "rate": documents.at_a_rate,
    "queries-alone": documents.queries_alone,
    "judged": documents.judged,
    "interrupted": documents.interrupted,
    "failed": documents.failed_early,
    "plain": documents.plain,
}
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
VOID = {"meta", "link", "br", "img", "input", "hr"}
NETWORK_ATTRIBUTES = {
    "src",
    "srcset",
    "href",
    "xlink:href",
    "action",
    "formaction",
    "poster",
    "data",
    "ping",
    "background",
    "manifest",
    "cite",
}
EVIL = "</script><script>alert(1)</script><!--\u2028'\"&<img src=x onerror=alert(1)>"


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    inside: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.inside).split())


class Page(HTMLParser):
    """All elements with their text; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.inside.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element.tag == tag and wanted.items() <= element.attributes.items()
        ]

    def figure(self, name: str) -> str | None:
        found = [e for e in self.elements if e.attributes.get("data-figure") == name]
        return found[0].text if found else None

    def json(self, name: str) -> Any:  # noqa: ANN401 - JSON
        (script,) = self.all("script", id=name)
        return json.loads("".join(script.inside))


@cache
def page_of(name: str) -> Page:
    """Rendered once."""
    return Page(html.render(RUNS[name]()))


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> tuple[RunDocument, Page]:
    return RUNS[request.param](), page_of(request.param)


def test_what_a_tier_does_not_count_is_no_zero() -> None:
    """bcache counts neither writes nor promotions."""
    text = documents.complete(5).model_dump_json()
    for name in ("write_hits", "write_misses", "promotions", "demotions"):
        text = re.sub(rf'"{name}":\d+', f'"{name}":null', text)
    text = re.sub(r'"((?:write_|)hit_ratio)":[\d.]+', r'"\1":null', text)
    page = html.render(RunDocument.model_validate_json(text))
    assert page.count("not counted") >= 4


def test_the_page_refers_to_no_network(run: tuple[RunDocument, Page]) -> None:
    _, page = run
    for element in page.elements:
        for name, value in element.attributes.items():
            if name in NETWORK_ATTRIBUTES:
                assert value.startswith("#"), f"<{element.tag} {name}={value!r}>"
    for style in page.all("style"):
        assert not re.search(r"url\(|@import|https?:|//", "".join(style.inside))
    assert not page.all("link")
    assert "http" not in json.dumps(page.json("hotset-charts"))
    (policy,) = [e for e in page.all("meta") if e.attributes.get("http-equiv")]
    assert policy.attributes["content"].startswith("default-src 'none';")
    assert not re.search(r"https?:|\*|unsafe-eval", policy.attributes["content"])


def test_scripts_are_those_that_the_policy_names(run: tuple[RunDocument, Page]) -> None:
    _, page = run
    (policy,) = [e for e in page.all("meta") if e.attributes.get("http-equiv")]
    running = [e for e in page.all("script") if "type" not in e.attributes]
    assert len(running) == 2
    for script in running:
        assert html._hash("".join(script.inside)) in policy.attributes["content"]
    handlers = [name for e in page.elements for name in e.attributes if name.startswith("on")]
    assert not handlers


def test_every_figure_of_the_answer_is_the_documents(run: tuple[RunDocument, Page]) -> None:
    document, page = run
    factor = document.factor()
    if factor is None:
        assert page.figure("factor") is None
    else:
        assert page.figure("factor") == words.factor(factor.ratio)
        within = words.interval(factor.ci_low, factor.ci_high)
        none = f"no interval: {answer.repeats(document)}"
        assert page.figure("interval") == (within if factor.has_interval else none)
        if factor.of_all_flash is not None:
            assert page.figure("of-all-flash") == words.percent(factor.of_all_flash, 0)
    for name in answer.ARM_ORDER:
        arm = document.arm(name)
        wanted = words.count(answer.figures(arm).rate) if arm else None
        assert page.figure(f"rate-{name}") == wanted
    accelerated = document.arm("accelerated")
    if accelerated is not None:
        ratios = [repeat.hit_ratio for repeat in accelerated.repeats]
        mean = sum(ratio for ratio in ratios if ratio is not None) / len(ratios)
        assert page.figure("hit-ratio") == words.percent(mean)
    if document.warmup is not None:
        assert page.figure("warmup") == words.duration(document.warmup.seconds)
    (headline,) = page.all("h2", id="headline")
    plain = headline.text.replace("\u2060", "")
    assert plain == headlines.write_headlines(document)[0]


def test_caveats_labels_and_gaps_are_shown(run: tuple[RunDocument, Page]) -> None:
    document, page = run
    shown = [e for e in page.all("li") if "data-code" in e.attributes]
    assert [e.attributes["data-code"] for e in shown] == [
        c.code for c in caveats.list_caveats(document)
    ]
    for element, caveat in zip(shown, caveats.list_caveats(document), strict=True):
        assert caveat.text in element.text
        assert caveat.advice in element.text
    chips = {e.text for e in page.all("li") if "chip" in e.attributes.get("class", "").split()}
    assert chips == {*answer.conditions(document), *answer.verdicts(document)}
    text = {e.text for e in page.all("li")}
    assert set(answer.gaps(document)) <= text


def test_an_incomplete_run_says_so_first(run: tuple[RunDocument, Page]) -> None:
    document, page = run
    alerts = page.all("div", role="alert")
    assert bool(alerts) == (document.state != "complete")
    if alerts:
        assert document.failure is not None
        assert document.failure.text in alerts[0].text
        (section,) = page.all("section", id="answer")
        assert page.elements.index(alerts[0]) < page.elements.index(section)


def test_every_chart_has_words_and_a_table(run: tuple[RunDocument, Page]) -> None:
    document, page = run
    shown = sections.page_of(document).sections
    specs = page.json("hotset-charts")
    drawn = [e for e in page.all("div") if "data-chart" in e.attributes]
    assert {e.attributes["data-chart"] for e in drawn} == set(specs)
    for element in drawn:
        assert element.attributes["role"] == "img"
        assert len(element.attributes["aria-label"]) > 40
    assert len(page.all("figure")) == len(shown)
    captions = [e.text for e in page.all("caption")]
    for section in shown:
        assert section.tables or section.notes
        for table in section.tables:
            assert table.rows
            assert any(table.caption in one for one in captions)
    assert len(page.all("table")) == len(page.all("caption"))


def test_charts_compile(run: tuple[RunDocument, Page]) -> None:
    _, page = run
    for spec in page.json("hotset-charts").values():
        svg = vl_convert.vegalite_to_svg({**spec, "width": 600})
        assert "NaN" not in svg
        assert "var(--" in svg


def test_headings_go_down_one_step_at_a_time(run: tuple[RunDocument, Page]) -> None:
    _, page = run
    levels = [int(e.tag[1]) for e in page.elements if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_page_carries_its_document(run: tuple[RunDocument, Page]) -> None:
    document, page = run
    carried = RunDocument.model_validate(page.json("hotset-document"))
    assert carried == sections.without_series(document)


def test_nothing_of_the_document_becomes_markup() -> None:
    raw = documents.complete().model_dump()
    document = documents.changed(
        documents.complete(),
        state="failed",
        failure={"phase": EVIL, "text": EVIL},
        experiment={"name": EVIL, "title": EVIL, "spec": {EVIL: [EVIL]}},
        storage=raw["storage"] | {"name": EVIL, "description": EVIL},
    )
    page = Page(html.render(document))
    assert len(page.all("script")) == 4
    assert not page.all("img")
    assert page.json("hotset-document")["experiment"]["title"] == EVIL
    (title,) = page.all("h1")
    assert title.text == " ".join(EVIL.split())


def test_a_quarter_of_an_hour_stays_below_two_megabytes() -> None:
    page = html.render(documents.complete(duration_s=900))
    assert len(page.encode()) < 2_000_000


def test_colours_have_contrast() -> None:
    """WCAG AA: 4.5 for text, 3 for marks, in light and dark."""
    style = "".join(page_of("complete").all("style")[0].inside)
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in _schemes(style))
    for scheme in (light, light | dark):
        for ink in ("ink", "ink-2", "link", "warn"):
            assert _contrast(scheme[ink], scheme["surface"]) >= 4.5
            assert _contrast(scheme[ink], scheme["page"]) >= 4.5
        for ink, paper in (
            ("warn", "warn-tint"),
            ("bad", "bad-tint"),
            ("ink-2", "accelerated-tint"),
        ):
            assert _contrast(scheme[ink], scheme[paper]) >= 4.5
        for mark in ("baseline", "accelerated", "all-flash"):
            assert _contrast(scheme[mark], scheme["surface"]) >= 3


def _schemes(style: str) -> tuple[str, str]:
    light, _, rest = style.partition("@media screen and (prefers-color-scheme: dark)")
    return light, rest.partition("* {")[0]


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_repeats_that_do_not_differ_are_not_said_to_be_few() -> None:
    document = documents.complete()
    factor = document.factors["tpcc"]
    assert factor is not None
    same = {"ci_low": factor.ratio, "ci_high": factor.ratio, "significant": False}
    factors = {**document.factors, "tpcc": factor.model_copy(update=same)}
    text = html.render(document.model_copy(update={"factors": factors}))
    assert "no interval: 3 repeats that do not differ" in text


def test_the_workload_is_named() -> None:
    """By all windows; what an earlier version did not record is not known."""
    groups = dict(configuration.groups(documents.complete()))
    rows = dict((*groups["Database"], *groups["Workload"]))
    assert rows["driver"] == "hotset's own"
    assert rows["items drawn"] == (
        "as TPC-C says (NURand): 62 % of stock's accesses on 20 % of its blocks"
    )
    assert (rows["isolation"], rows["seeds"]) == ("read committed", "3 from 1 to 3")
    raw = documents.complete().model_dump(mode="json")
    for arm in raw["arms"]:
        for one in arm["repeats"]:
            one.update(items=None, hottest_fifth=None, isolation=None, seed=None)
    rows = dict(dict(configuration.groups(RunDocument.model_validate(raw)))["Workload"])
    assert (rows["items drawn"], rows["isolation"]) == ("not known", "not known")
    assert "seeds" not in rows


@pytest.mark.skipif(BROWSER is None, reason="needs a Chromium browser")
def test_a_browser_draws_every_chart(tmp_path: Path) -> None:
    """The policy lets the page's own scripts run, and they need nothing that it forbids."""
    assert BROWSER is not None
    document = documents.complete()
    file = tmp_path / "report.html"
    file.write_text(html.render(document), encoding="utf-8")
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-sync",
        "--disable-background-networking",
        "--disable-component-update",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=10000",
        "--dump-dom",
    )
    done = subprocess.run(
        [BROWSER, *options, file.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    panels = [panel for section in sections.page_of(document).sections for panel in section.panels]
    assert f'data-drawn="{len(panels)}"' in done.stdout
    assert done.stdout.count('<svg xmlns="http://www.w3.org/2000/svg"') >= len(panels)
    assert "could not be drawn" not in done.stdout.partition("<script")[0]

"""Hit ratios and hot data in a browser: what matters first, sorted by any column, at any width.

What the pages show is made by the real templates of real records; only who answers is the test.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import cast

import pytest
from playwright.sync_api import Browser, Page, expect

from hotset.console import backend
from hotset.console.pages.reports import heat
from hotset.console.web import template
from hotset.core.record import document_of
from hotset.core.units import Bytes
from hotset.disk.flash_devices import Disk, FlashDevice
from hotset.hitratio.attribution import FILE_SYSTEM
from hotset.hitratio.report import HitRatios, HitRow
from hotset.monitoring.heat_view import Hot
from hotset.tier.base import TierKind, TierSpec
from tests.console_browser import PHONE, Visitor, faults, served

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
SIZES = {"wide": {"width": 1280, "height": 844}, "phone": PHONE}
OWN = (
    HitRow("public.order_line", 9000, 100, 0.5, 0.25, 0.4975, 0),
    HitRow("public.stock", 800, 200, 0.99, 1.0, 0.992, 0),
    HitRow("public.item", 20, 0, 1.0, None, 1.0, 0),
)
SYSTEM = (
    HitRow("pg_catalog.pg_class", 5000, 0, 0.1, None, 0.1, 0, system=True),
    HitRow("tpcc: (other files)", 768, 0, 0.0, None, 0.0, 0, system=True),
)
TOTAL = HitRow("(total)", 15588, 300, 0.4, 0.75, 0.41, 0)
HITS = HitRatios(
    "lab", "userspace", "table", None, NOON, "hits of requests", (*SYSTEM, *OWN), TOTAL
)
HOT = [
    Hot("public.order_line", 900.0, 0.5, 4 << 20, 225.0, 0.25, "table:public.order_line"),
    Hot(str(FILE_SYSTEM), 500.0, 0.3, 0, None, None, None, system=True),
    Hot("public.stock", 100.0, 0.2, 8 << 20, 12.5, 1.0, "table:public.stock"),
]
CELLS = [{"start": 0, "bytes": 1 << 20, "heat_per_mib": 12.5, "resident": 0.5}]


def shown_hits() -> str:
    return template("hits_report.html").render(report=document_of(HITS))


def shown_heat() -> str:
    return template("heat_shown.html").render(
        csrf="0" * 64,
        disk="lab",
        by="table",
        sections=[],
        rows=[document_of(one) for one in HOT],
        refusal=None,
        kept={},
        unlisted=[],
        lasting=False,
        whole=1 << 20,
        each=1 << 20,
        hottest=CELLS[0],
        across=1,
        height=1.3,
    )


def visit(page: Page, name: str, html: str) -> None:
    """Its page, in which the form is answered so."""
    place = f'<div id="{name}" hx-get="/{name}/told" hx-trigger="load"></div>'
    page.route(f"**/{name}/form", lambda route: route.fulfill(body=place, content_type="text/html"))
    page.route(f"**/{name}/told", lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto(f"/{name}")
    page.wait_for_selector(f"#{name} table")


def names(page: Page, table: str) -> list[str]:
    return page.locator(f"#{table} tbody th").all_inner_texts()


def unseen(page: Page, width: int) -> list[str]:
    """Figures that one would have to scroll for."""
    found: list[list[str]] = page.eval_on_selector_all(
        "main table:not(details:not([open]) *) td.figure",
        "all => all.map((one) => [one.innerText, one.getBoundingClientRect().right])",
    )
    assert found
    return [text for text, right in found if float(right) > width]


@pytest.mark.parametrize(
    ("kinds", "free"),
    [
        (["userspace"], True),
        (["dm-cache"], False),
        (["userspace", "dm-cache"], False),
        (["dm-cache", "userspace"], False),
        ([], False),
    ],
)
def test_a_page_polls_only_where_no_look_at_the_heat_costs_anything(
    monkeypatch: pytest.MonkeyPatch, kinds: list[str], free: bool
) -> None:
    """Of several disks of a name, one that costs nothing made the others pass for free."""

    async def listed(machine: str) -> list[FlashDevice]:
        del machine
        spec = TierSpec("writeback", "smq", Bytes(1), Bytes(1), Bytes(1), Bytes(1))
        path = PurePosixPath("/dev/slow")
        named = (Disk("lab", cast("TierKind", kind), "oltp", path, spec, (), ()) for kind in kinds)
        return [FlashDevice("flash", path, Bytes(1), (), (disk,)) for disk in named]

    monkeypatch.setattr(backend, "flash_devices_of", listed)
    assert asyncio.run(heat._costs_nothing("local", "lab")) is free


@pytest.mark.night
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "html"), [("hits", shown_hits), ("heat", shown_heat)])
def test_figures_are_seen_and_ones_own_tables_come_first(
    browser: Browser, tmp_path: Path, size: str, scheme: str, name: str, html: object
) -> None:
    """On a phone only names were seen; on top stood the catalog and "(other files)"."""
    assert callable(html)
    with served(tmp_path) as console:
        visitor = Visitor(browser, console, viewport=SIZES[size], color_scheme=scheme)
        page = visitor.log_in()
        visit(page, name, html())
        visitor.keep(tmp_path, name)
        assert unseen(page, SIZES[size]["width"]) == []
        assert names(page, f"{name}-own")[:2] == ["public.order_line", "public.stock"]
        assert page.locator(f"#{name}-system").is_hidden()
        page.locator(f"#{name}-more summary").click()
        assert page.locator(f"#{name}-system").is_visible()
        assert faults(page) == []
        visitor.keep(tmp_path, f"{name}-opened")
        visitor.close()


@pytest.mark.night
def test_each_column_sorts_by_mouse_and_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as console:
        visitor = Visitor(browser, console)
        page = visitor.log_in()
        visit(page, "hits", shown_hits())
        table = page.locator("#hits-own")
        head = table.get_by_role("columnheader", name="Hits", exact=True)
        head.get_by_role("button").click()
        assert names(page, "hits-own") == ["public.item", "public.stock", "public.order_line"]
        expect(head).to_have_attribute("aria-sort", "descending")
        head.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert names(page, "hits-own")[0] == "public.order_line"
        expect(head).to_have_attribute("aria-sort", "ascending")
        table.get_by_role("button", name="Table or index").press("Space")
        assert names(page, "hits-own")[0] == "public.item"
        expect(head).not_to_have_attribute("aria-sort", "ascending")
        expect(table.locator("[aria-sort]")).to_have_count(1)
        # Nothing known is less than any figure.
        table.get_by_role("button", name="Write hits").click()
        assert names(page, "hits-own")[-1] == "public.item"
        visitor.close()


@pytest.mark.night
def test_what_is_fetched_anew_stays_sorted_and_open(browser: Browser, tmp_path: Path) -> None:
    """Hot data is fetched every 20 s, in the server's order and folded."""
    with served(tmp_path) as console:
        visitor = Visitor(browser, console)
        page = visitor.log_in()
        visit(page, "heat", shown_heat())
        page.locator("#heat-own").get_by_role("button", name="Cached").click()
        page.locator("#heat-more summary").click()
        assert names(page, "heat-own") == ["public.stock", "public.order_line"]
        page.evaluate(
            "text => htmx.swap({target: '#heat', text, swap: 'innerMorph'})",
            shown_heat(),
        )
        expect(page.locator("#heat-system")).to_be_visible()
        assert names(page, "heat-own") == ["public.stock", "public.order_line"]
        expect(page.locator("#heat-own [aria-sort]")).to_contain_text("Cached")
        visitor.close()

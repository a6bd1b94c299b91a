"""What a console shows of what was recorded, in a real browser, of a week and of nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from hotset.console.pages import history
from hotset.core.clock import Moment
from hotset.monitoring.history import opening, series
from hotset.monitoring.history.recorder import Recorder
from pages import simulated_week
from tests.cli_server import XDG
from tests.console_browser import PHONE, Served, Visitor, faults, served
from tests.observations import Clock, counters, disk, end

pytestmark = pytest.mark.night

WIDE = {"width": 1280, "height": 844}
TOLD = "#told .events li"


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A console whose history is a simulated week, with a night in which nothing was recorded."""
    root = tmp_path_factory.mktemp("week")
    file = root / "XDG_DATA_HOME/hotset/history/local.sqlite"
    simulated_week.write(file, time.time())
    with served(root, env={variable: str(root / variable) for variable in XDG}) as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_week_with_its_events_and_its_gap(
    browser: Browser, week: Served, tmp_path: Path, size: dict[str, int], scheme: str
) -> None:
    visitor = Visitor(browser, week, viewport=size, color_scheme=scheme)
    visitor.log_in()
    page = visitor.inspect("/?span=7d", TOLD, tmp_path)
    expect(page.get_by_role("heading", name="The last 7 days", exact=True)).to_be_visible()
    expect(page.locator("#charts canvas")).to_have_count(6)
    expect(page.get_by_text("Shaded: nothing was recorded")).to_be_visible()
    expect(page.locator(TOLD).filter(has_text="warmup run shop database:tpcc")).to_be_visible()
    expect(page.locator(TOLD).filter(has_text="its counters restarted")).to_be_visible()
    # Nothing is cut off: each part ends within the screen.
    ends = page.eval_on_selector_all(
        "#charts figure, #told *", "all => all.map(one => one.getBoundingClientRect().right)"
    )
    assert max(ends) <= size["width"]
    page = visitor.inspect("/disks/archive/history?span=7d", TOLD, tmp_path)
    expect(page.get_by_role("heading", name="History of archive")).to_be_visible()
    # The one that was made last, not the one of that name before it.
    expect(page.locator("#told section.disk")).to_have_count(1)
    visitor.close()


def test_a_span_is_chosen_by_keyboard_and_is_in_the_address(browser: Browser, week: Served) -> None:
    visitor = Visitor(browser, week)
    page = visitor.log_in()
    expect(page.get_by_role("link", name="15 minutes")).to_have_attribute("aria-current", "true")
    page.get_by_role("link", name="15 minutes").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?span=1h")
    expect(page.get_by_role("heading", name="The last hour", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="1 hour")).to_have_attribute("aria-current", "true")
    assert faults(page) == []
    visitor.close()


def test_a_span_that_does_not_exist_is_the_first(browser: Browser, week: Served) -> None:
    visitor = Visitor(browser, week)
    visitor.log_in()
    visitor.page.goto("/?span=%3Cscript%3E")
    expect(
        visitor.page.get_by_role("heading", name="The last 15 minutes", exact=True)
    ).to_be_visible()
    visitor.close()


def look_at_a_damaged_one(browser: Browser, folder: Path) -> None:
    with served(folder) as console:
        visitor = Visitor(browser, console)
        visitor.log_in()
        expect(visitor.page.locator("#told .said")).to_contain_text("was damaged")
        visitor.close()


def test_a_damaged_history_is_said_on_the_page(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "xdg/XDG_DATA_HOME/hotset/history"
    folder.mkdir(parents=True)
    (folder / "local.sqlite").write_bytes(b"not a database " * 100)
    # The log says so, too, and ``served`` wants an empty one.
    damaged = r"the history was damaged .*local\.damaged-"
    with pytest.raises(AssertionError, match=damaged):
        look_at_a_damaged_one(browser, tmp_path)
    assert len(list(folder.glob("local.damaged-*.sqlite"))) == 1


def look_at_the_second(browser: Browser, folder: Path) -> None:
    with served(folder) as console:
        visitor = Visitor(browser, console)
        visitor.log_in()
        expect(visitor.page.locator("#told .said")).to_contain_text("another console (process")
        expect(visitor.page.locator("#told section.disk")).to_contain_text("shop")
        visitor.close()


def test_a_second_console_shows_what_the_first_records(browser: Browser, tmp_path: Path) -> None:
    now = time.time()
    clock, first = Clock(now - 60, 1000), Recorder(opening.path_of("local"))
    for hits in range(0, 700, 100):
        first.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    with pytest.raises(AssertionError, match="another console"):
        look_at_the_second(browser, tmp_path)
    first.close(clock.see())


def drawn(file: Path, choice: series.Choice, now: Moment) -> dict[str, object]:
    series_ = opening.look(file, lambda store: series.load(store, choice, now))
    assert series_ is not None
    found: dict[str, object] = json.loads(json.dumps(history._draw(series_, "")))
    return found


def test_the_script_gets_a_value_for_each_step_and_none_for_a_gap(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "local.sqlite"
    one = Recorder(file)
    for hits in (0, 50, 100):
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    end(one, clock, disk(counters(100)))
    found = drawn(file, series.CHOICES[0], clock.moment)
    (shop,) = found["disks"]  # type: ignore[misc]
    values = shop["values"]
    assert {len(one) for one in values.values()} == {len(found["at"])}  # type: ignore[arg-type]
    assert [one for one in values["reads"] if one is not None] == [5, 5]
    assert found["events"] != []


def test_the_text_of_an_event_is_no_html(tmp_path: Path) -> None:
    """A disk's name, an error of a server: what others wrote."""
    clock, file = Clock(), tmp_path / "local.sqlite"
    one = Recorder(file)
    one.take(clock.see(error="<script>alert(1)</script>"))
    one.close(clock.see())
    clock.passes(1)
    html = str(drawn(file, series.CHOICES[0], clock.moment)["html"])
    assert "&lt;script&gt;" in html
    assert "<script>" not in html

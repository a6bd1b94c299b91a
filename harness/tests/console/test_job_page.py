"""The page of a benchmark that has ended: figures, verdicts, tables and charts, at any width."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hotset.console.web import STATIC
from hotset.core import errors
from hotset.core.errors import HotsetError, Remedy, RequestError, field_of, remedies_of
from hotset.core.paths import data_dir
from hotset.monitoring.history import opening
from hotset.monitoring.history.recorder import Recorder
from hotset.operations.jobs import store as jobs
from tests.benchmark_results import outcome, tpcc_document, tpch_document
from tests.console_browser import PHONE, Visitor, faults, served
from tests.observations import Clock, counters, disk

pytestmark = pytest.mark.night

WIDE = {"width": 1280, "height": 844}
SECONDS = 60


def kept_job(
    verb: str, result: object, ticks: int = 0, old: bool = False, error: HotsetError | None = None
) -> str:
    """A job that began a minute ago and has ended; returns its id.

    :param old: its seconds have no p50 and p99.
    :param error: it failed of this.
    """
    words = verb.split()
    folder = data_dir() / "jobs" / f"20261126-100000-{'-'.join(words)}"
    folder.mkdir(parents=True, mode=0o700)
    begun = datetime.fromtimestamp(time.time() - SECONDS - 10, UTC)
    kept = {
        "schema_version": jobs.SCHEMA_VERSION,
        "words": words,
        "values": {"dsn": "postgresql://tpcc@localhost/tpcc", "users": "4"},
        "machine": "",
        "lock": None,
        "started": begun.isoformat(),
    }
    said: list[Mapping[str, object]] = [{"at": 0.4, "task": "TPC-C, 4 users, 2 warehouses"}]
    for second in range(ticks):
        tick = {"second": second, "phase": "measure", "tpm": 3000 + 10 * second, "nopm": 1350}
        latency = {"latency_ms_p50": 2.0, "latency_ms_p95": 5.0 + second % 3, "latency_ms_p99": 9.0}
        if old:
            latency = {"latency_ms_p95": latency["latency_ms_p95"]}
        said.append({"at": second + 1.6, "tick": {**tick, **latency, "failed": 0}})
    if error is not None:
        remedies = [asdict(one) for one in remedies_of(error)]
        told = {"message": str(error), "field": field_of(error), "remedies": remedies}
        said.append({"at": 1.0, "error": errors.of_api(error), "status": 409, **told})
    (folder / "job.json").write_text(json.dumps(kept))
    (folder / "err").write_text("".join(f"{json.dumps(one)}\n" for one in said))
    (folder / "out").write_text(json.dumps(result))
    (folder / "code").write_text("4\n" if error else "0\n")
    return folder.name


def recorded_history() -> None:
    """What a console recorded of a disk while such a job ran."""
    clock, recorder = Clock(time.time() - SECONDS - 30, 1000), Recorder(opening.path_of("local"))
    for step in range(9):
        recorder.take(clock.see(disk(counters(900 * step, 100 * step))))
        clock.passes(10)
    recorder.close(clock.see())


def within(page: Page, selector: str, width: int) -> list[str]:
    """The texts of all that can be seen without scrolling sideways."""
    found = page.eval_on_selector_all(
        selector,
        "all => all.map((one) => [one.innerText, one.getBoundingClientRect().right,"
        " one.getBoundingClientRect().width])",
    )
    return [text for text, right, wide in found if wide > 0 and right <= width]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_run_is_told_as_the_command_line_tells_it(
    browser: Browser, tmp_path: Path, size: dict[str, int], scheme: str
) -> None:
    """It ended with "71 s checking the conditions" and 44 kB of JSON with base64 in the page."""
    path = f"/jobs/{kept_job('tpcc run', tpcc_document(outcome()), SECONDS)}"
    recorded_history()
    with served(tmp_path) as console:
        visitor = Visitor(browser, console, viewport=size, color_scheme=scheme)
        visitor.log_in()
        page = visitor.inspect(path, "#hits canvas", tmp_path)
        expect(page.locator("h1")).to_contain_text("TPC-C run")
        expect(page.locator(".verdicts li").filter(has_text="12 of 12 conditions")).to_be_visible()
        expect(page.locator(".verdicts .said")).to_have_text("nopm>=5000: missed, measured 2,400")
        for words in (
            "limits on response times: kept",
            "age 3,082 orders",
            "cancelled 3 statements",
        ):
            expect(page.locator(".told p").filter(has_text=words)).to_be_visible()
        cells = within(page, ".told td, .told th[scope=row]", size["width"])
        assert {"new-order", "order-status"} <= set(cells)
        shown = " ".join(cells).split()
        assert {"50.00", "2.00"} <= set(shown), "a percentile lies beyond the screen"
        expect(page.locator("#job canvas")).to_have_count(3)
        expect(page.locator("#hits-said")).to_contain_text("recorded them every 10 s. Whether")
        assert "HISTFAAA" not in page.content()
        assert len(page.content()) < 40_000
        page.reload()
        expect(page.locator("#job canvas")).to_have_count(3)
        page.locator("details", has_text="consistency conditions").locator("summary").click()
        assert faults(page) == []
        visitor.keep(tmp_path, "opened")
        visitor.close()


def test_the_whole_result_is_a_file_for_those_who_are_logged_in(
    browser: Browser, tmp_path: Path
) -> None:
    document = tpcc_document(outcome())
    path = f"/jobs/{kept_job('tpcc run', document)}"
    with served(tmp_path) as console:
        visitor = Visitor(browser, console)
        refused = visitor.page.request.get(f"{path}/result.json", max_redirects=0)
        assert refused.status == 303
        page = visitor.log_in()
        page.goto(path)
        with page.expect_download() as download:
            page.get_by_role("link", name="All results as JSON").click()
        assert download.value.suggested_filename == f"{path.rpartition('/')[2]}.json"
        assert json.loads(download.value.path().read_text()) == document
        visitor.close()


def test_an_old_job_has_charts_and_says_what_it_lacks(browser: Browser, tmp_path: Path) -> None:
    """Its seconds have no other percentile, and its result was written by another hotset."""
    path = f"/jobs/{kept_job('tpcc run', {'result': {}}, SECONDS, old=True)}"
    with served(tmp_path) as console:
        visitor = Visitor(browser, console)
        visitor.log_in()
        page = visitor.inspect(path, "#latency canvas", tmp_path)
        expect(page.locator("#job canvas")).to_have_count(2)
        expect(page.locator("#hits-said")).to_contain_text("No hit ratio is shown: this console")
        expect(page.get_by_text("it was written by another hotset")).to_be_visible()
        visitor.close()


def test_tpch_is_told_by_query(browser: Browser, tmp_path: Path) -> None:
    path = f"/jobs/{kept_job('tpch run', tpch_document())}"
    with served(tmp_path) as console:
        visitor = Visitor(browser, console, viewport=PHONE)
        visitor.log_in()
        page = visitor.inspect(path, ".told table", tmp_path)
        cells = within(page, ".told td", PHONE["width"])
        assert any("0.700" in cell for cell in cells)
        expect(page.get_by_text("geometric mean")).to_be_visible()
        visitor.close()


def test_what_helps_is_said_in_words_of_the_page(browser: Browser, tmp_path: Path) -> None:
    """It said "add replace=true", and no form has such a field."""
    error = RequestError(
        "TPC-C is there already", Remedy("load it again", parameters={"replace": True}), field="dsn"
    )
    path = f"/jobs/{kept_job('tpcc build', None, error=error)}"
    words = "dsn: TPC-C is there already; to load it again: on the command line add --replace"
    with served(tmp_path) as console:
        visitor = Visitor(browser, console)
        page = visitor.log_in()
        page.goto("/benchmarks")
        expect(page.locator("td.latest")).to_have_text(words)
        page.goto(path)
        expect(page.locator("#said .error")).to_contain_text(words)
        assert "replace=true" not in page.inner_text("main")
        assert words in page.request.get(path).text(), "also before the script has run"
        visitor.close()


def test_a_chart_that_is_made_anew_leaves_nothing_behind(browser: Browser, tmp_path: Path) -> None:
    """Whenever a disk came or went, the observers of the charts before stayed and drew them."""
    path = f"/jobs/{kept_job('tpcc run', tpcc_document(outcome()), SECONDS)}"
    with served(tmp_path) as console:
        visitor = Visitor(browser, console)
        visitor.log_in()
        page = visitor.inspect(path, "#latency canvas", tmp_path, axe=False)
        sized = page.evaluate(
            """async () => {
              const place = document.querySelector("#hits .plot");
              document.getElementById("hits").hidden = false;
              const line = { label: "a", colour: "--accelerated" };
              const plot = Plots.create(place, "percent", [line]);
              const frames = async () => {
                for (let at = 0; at < 5; at += 1) await new Promise(requestAnimationFrame);
              };
              await frames();
              let sized = 0;
              const setSize = plot.setSize;
              plot.setSize = (size) => { sized += 1; setSize(size); };
              place.style.width = "300px";
              await frames();
              const before = sized;
              plot.destroy();
              place.style.width = "200px";
              await frames();
              return [before, sized - before];
            }"""
        )
        assert sized == [1, 0]
        visitor.close()


def test_every_table_has_a_caption() -> None:
    for file in sorted((STATIC.parent / "templates").glob("*.html")):
        text = file.read_text()
        tables = re.findall(r"<table[^>]*>\s*(<caption)?", text)
        assert all(tables), f"{file.name}: a table without a caption"

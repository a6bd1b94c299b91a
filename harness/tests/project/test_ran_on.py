"""What docs/sql-server.md says to have run is what a script wrote."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

import pytest

from campaign import ran_on
from hotset.hammerdb.release import HOME_VARIABLE

HEAD = "### Ran on Babelfish, version 4"


def done(code: int, out: str = "", err: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], code, out, err)


def test_an_act_that_fails_is_written_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    called = list[Sequence[str]]()

    def call(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        called.append(words)
        return done(4, "half", "a note\nhotset: error 1: a | b\n") if "run" in words else done(0)

    outcomes = ran_on.run(call, ran_on.ACTS)
    assert outcomes["TPC-C: build"] == "yes"
    assert outcomes["TPC-C: run"] == r"failed (4): error 1: a \| b"
    for name in ("HammerDB: build", "HammerDB: run", "HammerDB: drop"):
        assert outcomes[name] == f"not run: {HOME_VARIABLE} is not set"
    assert not any("hammerdb" in words for words in called)
    text = ran_on.section("Babelfish, version 4", "abc", "2026-01-01", outcomes)
    assert text.startswith(f"{HEAD}\n\nhotset abc, 2026-01-01.\n")
    assert r"failed (4): error 1: a \| b |" in text


def test_a_section_takes_the_place_of_an_earlier_one() -> None:
    page = ran_on.put("# Page\n\n## Tested\n", f"{HEAD}\n\nold\n")
    assert page == f"# Page\n\n## Tested\n\n{HEAD}\n\nold\n"
    page = ran_on.put(f"{page}\n### Ran on another\n\nkept\n", f"{HEAD}\n\nnew\n")
    assert page == f"# Page\n\n## Tested\n\n{HEAD}\n\nnew\n\n### Ran on another\n\nkept\n"


def test_the_page_has_whole_sections_of_commits_that_there_are() -> None:
    sections = re.findall(r"^### Ran on .*?(?=^#|\Z)", ran_on.PAGE.read_text(), re.M | re.S)
    assert sections
    for text in sections:
        said = re.search(r"^hotset ([0-9a-f]{7,}), \d{4}-\d\d-\d\d\.$", text, re.M)
        assert said, text  # not of what was not committed
        for name, words in ran_on.ACTS.items():
            assert f"| {name} | `{words}` |" in text

"""The documentation site: every link leads somewhere, nothing is fetched, versions stay."""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

from pages import docs_site

ROOT = docs_site.ROOT
STAGED = dict(docs_site.stage())
PAGES = {name: text for name, text in STAGED.items() if text is not None}


class Links(HTMLParser):
    """What a page links to, what it fetches, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        self.anchors |= {str(of["id"])} if of.get("id") else set()
        target = of.get("src") or of.get("href")
        if target:
            (self.links if tag == "a" else self.fetched).append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a version, built as `make docs-site` builds it, beside an older one."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "0.0.9").mkdir()
    (folder / "0.0.9/index.html").write_text("the older one")
    docs_site.build(folder, "0.0.10", STAGED.items())
    return folder


def made(site: Path, name: str) -> Path:
    """The page of a file of the repository."""
    path = posixpath.dirname(name) if name.endswith("README.md") else name.removesuffix(".md")
    return site / "0.0.10" / path / "index.html"


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    """By our own account, beside Zensical's: of what was built."""
    found = {made(site, name).resolve(): name for name in PAGES}
    pages = {path: Links(path.read_text()) for path in found}
    dead = []
    for path, page in pages.items():
        for link in page.links + page.fetched:
            to = urlsplit(link)
            if to.scheme or not (to.path or to.fragment):
                continue
            target = (path.parent / unquote(to.path)).resolve() if to.path else path
            target = target / "index.html" if target.is_dir() else target
            there = target.exists() and (
                not to.fragment or target not in pages or to.fragment in pages[target].anchors
            )
            dead += [] if there else [(found[path], link)]
    assert dead == []


@pytest.mark.parametrize("link", ["[x](#nowhere)", "[x](warm-up.md#nowhere)", "[x](../gone.md)"])
def test_a_link_that_leads_nowhere_ends_the_build(link: str, tmp_path: Path) -> None:
    files = STAGED | {"docs/questions.md": f"{STAGED['docs/questions.md']}\n{link}\n"}
    with pytest.raises(subprocess.CalledProcessError):
        docs_site.build(tmp_path, "1", files.items())
    assert not (tmp_path / "1").exists()


def test_a_link_out_of_the_repository_s_files_is_found_before() -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/x\.md: gone\.md leads nowhere"):
        docs_site.rewritten("docs/x.md", "[x](gone.md)")
    assert docs_site.rewritten("scripts/README.md", "[tests](tests) [c](campaign)")[0] == (
        "tests c"
    )


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """No font, no script and no picture of another host: whoever reads is not told on."""
    foreign = {
        (name, target)
        for name in PAGES
        for target in Links(made(site, name).read_text()).fetched
        if urlsplit(target).netloc
    }
    assert foreign == set()


def test_a_page_has_the_lists_tables_and_code_that_it_has_elsewhere(site: Path) -> None:
    """Python-Markdown makes no list where there is no blank line before it; GitHub does."""
    reader = MarkdownIt("commonmark").enable("table")
    for name, text in PAGES.items():
        whole = made(site, name).read_text()
        article = whole[whole.index("<article") : whole.index("</article>")]
        for tag in ("li", "table", "td", "h2", "h3", "img", "ol", "pre"):
            counts = [len(re.findall(f"<{tag}[ >]", one)) for one in (reader.render(text), article)]
            assert counts[0] == counts[1], f"{name}: <{tag}>"


def test_choices_have_bars_between_them_and_no_backslashes(site: Path) -> None:
    """`oltp|warehouse` was shown as `oltp\\|warehouse`: GitHub wants the backslash in a table."""
    page = made(site, "docs/reference/cli.md").read_text()
    assert "<code>oltp|warehouse</code>" in page
    shown = {name for name in PAGES if re.search(r"<code>[^<]*\\\|", made(site, name).read_text())}
    assert shown == set()


def test_it_can_be_searched_and_read_in_the_dark(site: Path) -> None:
    found = json.loads((site / "0.0.10/search.json").read_text())
    titles = {one["title"] for one in found["items"]}
    assert {"Which cache for my server?", "Warm up the cache"} <= titles
    page = made(site, "README.md").read_text()
    assert 'data-md-color-scheme="slate"' in page
    assert '"provider": "mike"' in page or '"provider":"mike"' in page


def test_other_versions_stay_and_the_newest_comes_first(site: Path) -> None:
    assert (site / "0.0.9/index.html").read_text() == "the older one"
    listed = json.loads((site / "versions.json").read_text())
    assert [one["version"] for one in listed] == ["0.0.10", "0.0.9"]
    assert [one["aliases"] for one in listed] == [["latest"], []]
    assert "url=0.0.10/" in (site / "index.html").read_text()


def test_every_page_of_docs_is_in_the_menu() -> None:
    menu = tomllib.loads(docs_site.CONFIGURATION.read_text())["project"]["nav"]
    named = set(re.findall(r"'([\w./-]+\.md)'", str(menu)))
    pages = {str(one.relative_to(ROOT)) for one in ROOT.glob("docs/**/*.md")}
    assert pages <= named
    assert named <= set(PAGES)

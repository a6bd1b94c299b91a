"""The documentation site: `make docs-site`, into dist/site/VERSION.

The pages are those of docs/ and whatever they link to in this repository, in the same folders, so
that every link holds that holds in the repository. Zensical builds them and checks links and
anchors; one that leads nowhere ends the build. Other versions that are in dist/site stay there:
`versions.json` beside them is what the version menu of every page reads.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from hotset import __version__

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "dist/site"
CONFIGURATION = ROOT / "docs/zensical.toml"
STARTS = ("README.md", "docs/README.md")
LINK = re.compile(r"(\[(?:[^\[\]]|\[[^\]]*\]\([^)]*\))*\])\(([^)\s]+)\)")
LATEST = '<meta http-equiv="refresh" content="0; url={version}/">\n'


def stage() -> Iterator[tuple[str, str | None]]:
    """Yield the parts of the site: paths in the repository, with the text of pages.

    A link to a folder becomes one to its README; where it has none, its text stays.

    :raises FileNotFoundError: a link leads nowhere.
    """
    left, seen = list(STARTS), set(STARTS)
    while left:
        name = left.pop()
        if not name.endswith(".md"):
            yield name, None
            continue
        text, targets = rewritten(name, (ROOT / name).read_text(encoding="utf-8"))
        yield name, with_plain_bars(text)
        left += sorted(targets - seen)
        seen |= targets


def with_plain_bars(text: str) -> str:
    r"""A page without backslashes before the bars in a table's code, which GitHub needs there, and
    Python-Markdown shows.

    >>> with_plain_bars(r"| `a\|b` | x \| y |")
    '| `a|b` | x \\| y |'
    """
    return re.sub(
        r"^\|.*$",
        lambda row: re.sub(r"`[^`\n]+`", lambda code: code[0].replace(r"\|", "|"), row[0]),
        text,
        flags=re.MULTILINE,
    )


def rewritten(name: str, text: str) -> tuple[str, set[str]]:
    """A page with its links to folders replaced, and the files that it links to."""
    targets: set[str] = set()

    def replace(link: re.Match[str]) -> str:
        label, (path, hash_, anchor) = link[1], link[2].partition("#")
        if "://" in path or path.startswith("mailto:") or not path:
            return link[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if not (ROOT / target).exists():
            raise FileNotFoundError(f"{name}: {path} leads nowhere")
        if (ROOT / target).is_dir():
            target, path = f"{target}/README.md", f"{path.rstrip('/')}/README.md"
            if not (ROOT / target).exists():
                return label[1:-1]
        targets.add(target)
        return f"{label}({path}{hash_}{anchor})"

    return LINK.sub(replace, text), targets


def build(folder: Path, name: str, files: Iterable[tuple[str, str | None]]) -> None:
    """Build the site of a version below a folder, beside those of others.

    :param files: the result of `staged`.
    :raises subprocess.CalledProcessError: a link or an anchor leads nowhere.
    """
    with tempfile.TemporaryDirectory(prefix="hotset-docs-") as work:
        pages = Path(work) / "pages"
        for path, text in files:
            (pages / path).parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                shutil.copyfile(ROOT / path, pages / path)
            else:
                (pages / path).write_text(text, encoding="utf-8")
        shutil.copyfile(CONFIGURATION, Path(work) / "zensical.toml")
        zensical = Path(sys.executable).with_name("zensical")
        subprocess.run([zensical, "build", "--clean", "--strict"], cwd=work, check=True)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(Path(work) / "site", folder / name)
    describe(folder)


def describe(folder: Path) -> None:
    """Write the list of versions, newest first, and a page above that leads to the newest."""
    versions = [path.name for path in folder.iterdir() if (path / "index.html").is_file()]
    newest, *others = sorted(versions, key=numbers, reverse=True)
    listed = [
        {"version": version, "title": version, "aliases": ["latest"] if version == newest else []}
        for version in (newest, *others)
    ]
    (folder / "versions.json").write_text(json.dumps(listed, indent=1) + "\n")
    (folder / "index.html").write_text(LATEST.format(version=newest))


def numbers(name: str) -> tuple[list[int], str]:
    """A version as it is ordered.

    >>> sorted(["0.10.0", "0.9.1", "0.9.0"], key=numbers)
    ['0.9.0', '0.9.1', '0.10.0']
    """
    return [int(digits) for digits in re.findall(r"\d+", name)], name


if __name__ == "__main__":
    build(FOLDER, __version__, stage())

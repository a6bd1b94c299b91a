"""The documentation says what the program does: nothing undocumented, nothing stale, no dead link.

`make docs` rewrites docs/reference; what it cannot know is added to scripts/pages/reference.py.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import jsonschema
import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hotset import cli
from hotset.console import web
from hotset.core import errors
from hotset.core.units import SIZE_PATTERN, Bytes
from hotset.experiment.file import disk_spec, spec
from hotset.tpcc.schema import SCHEMA
from pages import reference
from tests import sqlserver_examples
from tests.support import written

ROOT = Path(__file__).parents[3]
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.toml"))
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    + [ROOT / f"{part}/README.md" for part in ("cache-layer", "tpcc", "tpch", "harness", "scripts")]
)
# Set by the shell or meant for other programs, and read by none of ours for a choice of its own.
NOT_OURS = {"PATH", "HOME", "TMP", "TMPDIR", "TZ", "LC_ALL", "TERM", "COLUMNS"}
VARIABLE = re.compile(
    r"\b(?:(?:HOTSET|MSSQL|XDG)_[A-Z][A-Z_]*[A-Z]|HAMMERDB_HOME|PGBENCH|ACCEPT_EULA)\b"
)
# The container's own, which compose.yaml sets.
OF_THE_CONTAINER = {"MSSQL_DATA_DIR", "MSSQL_LOG_DIR"}

TREE = typer.main.get_command(cli.create())


def test_a_file_that_is_named_is_there() -> None:
    """In a comment, a docstring or a page: by the end of its path, with a folder."""
    command = ["git", "ls-files"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [name for name in tracked.splitlines() if not name.startswith("reports/published/")]
    ends = "py|rs|sql|sh|toml|md|html|js"
    named = re.compile(rf"`(?:\.{{1,2}}/)*((?:[\w.-]+/)+[\w.-]+\.(?:{ends}))`")
    missing = [
        f"{name}: {path}"
        for name in files
        if re.search(rf"\.(?:{ends})$", name)
        for path in named.findall((ROOT / name).read_text(encoding="utf-8", errors="replace"))
        if not any(f"/{one}".endswith(f"/{path}") for one in files)
    ]
    assert missing == []


def test_the_reference_is_what_the_program_says() -> None:
    for path, text in reference.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `make docs`"


def test_every_option_and_argument_is_explained() -> None:
    silent = [
        (" ".join(words), one.name)
        for words, command in reference.commands(TREE, ("hotset",))
        for one in reference.parameters(command)
        if not one.help
    ]
    assert silent == []


def test_every_command_is_explained() -> None:
    every = dict(reference.commands(TREE, ("hotset",)))
    assert [words for words, command in every.items() if not command.help] == []
    text = (ROOT / "docs/reference/cli.md").read_text()
    for words in every:
        assert f"## {' '.join(words)}\n" in text


def test_every_exit_code_is_explained() -> None:
    named = {
        value
        for name, value in vars(errors).items()
        if name.isupper() and type(value) is int  # a bool is none
    }
    assert set(reference.EXIT_CODES) == named | {0}


def _variables_read() -> set[str]:
    """Every environment variable that a file of ours names, in code, tests and scripts."""
    found: set[str] = set()
    for pattern in ("*/hotset/**/*.py", "*/tests/**/*.py", "scripts/**/*.py"):
        for file in ROOT.glob(pattern):
            if file != Path(__file__) and file.name != "reference.py":
                found |= {*VARIABLE.findall(file.read_text()), *_read_by(file)}
    for pattern in (
        "scripts/*.sh",
        "scripts/Hotset/*/*.ps1",
        "compose.yaml",
        "containers/*.yaml",
        "cache-layer/crates/*/src/**/*.rs",
    ):
        for file in ROOT.glob(pattern):
            found |= set(VARIABLE.findall(file.read_text()))
    return found - NOT_OURS - OF_THE_CONTAINER


def _read_by(file: Path) -> Iterator[str]:
    """Names in ``os.environ.get("NAME")``, ``os.environ["NAME"]`` and the like."""
    text = file.read_text()
    if "environ" not in text or "tests" in file.parts:
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=source), args=[ast.Constant(value=str(name)), *_]
            ):
                pass
            case ast.Subscript(value=source, slice=ast.Constant(value=str(name))):
                pass
            case _:
                continue
        if ast.unparse(source) in ("os.environ", "environ"):
            yield name


def test_every_environment_variable_is_explained() -> None:
    explained = {name for table in reference.ENVIRONMENT.values() for name in table}
    assert _variables_read() - explained == set()


def test_no_explained_environment_variable_is_gone() -> None:
    explained = {name for table in reference.ENVIRONMENT.values() for name in table}
    # Read by a library: rich.
    assert explained - _variables_read() - {"NO_COLOR"} == set()


# The experiment file


def test_every_key_is_explained() -> None:
    keys = dict(reference.keys(json.loads(_page("experiment.schema.json"))))
    assert [key for key, described in keys.items() if not described.get("description")] == []
    assert set(keys) == {*_keys(spec.Spec, ""), *_keys(disk_spec.DiskSpec, "")}
    for key in keys:
        assert f"| `{key}` |" in _page("experiment.md")


def _page(name: str) -> str:
    return (ROOT / "docs/reference" / name).read_text(encoding="utf-8")


def _keys(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Keys by pydantic's own account, beside that of the schema."""
    for name, field in model.model_fields.items():
        tables = [one for one in (field.annotation, *get_args(field.annotation)) if _is_table(one)]
        if tables and name not in ("nopm", "tpm", "queries_s"):
            yield from _keys(tables[0], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _is_table(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def test_shipped_experiments_name_the_schema_and_keep_to_it(subtests: pytest.Subtests) -> None:
    for path in EXPERIMENTS:
        with subtests.test(path=str(path)):
            first = path.read_text().splitlines()[0]
            assert first.startswith("#:schema ")
            named = path.parent / first.removeprefix("#:schema ")
            jsonschema.validate(tomllib.loads(path.read_text()), json.loads(named.read_text()))


def test_the_schema_refuses_what_the_program_refuses(subtests: pytest.Subtests) -> None:
    for override in [
        "arms=[]",
        'arms=["baseline", "baseline"]',
        'flash.size="10 apples"',
        "machine.kind=7",
        'name="Has Spaces"',
        "prices.server=-1",
        'storage.device="nvme0"',
        "tier.cach=1",
        'tier.kind="ramdisk"',
        "tpcc=3",
        "tpcc.users=0",
        "warmup.probe_hit_ratio=1.5",
    ]:
        with subtests.test(override=str(override)):
            table = tomllib.loads(EXPERIMENTS[0].read_text())
            spec._override(table, override)
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(table, json.loads(_page("experiment.schema.json")))
            with pytest.raises(spec.SpecError):
                spec.read(EXPERIMENTS[0], (override,))


@given(st.from_regex(r"\s?[0-9]{1,4}(\.[0-9])?\s?[KMGTkmgt]?[iI]?[bB]?\s?", fullmatch=True))
def test_the_schema_takes_the_sizes_that_the_program_takes(text: str) -> None:
    try:
        Bytes.parse(text)
        taken = True
    except ValueError:
        taken = False
    assert bool(re.search(SIZE_PATTERN, text)) == taken


# Pages


def test_every_script_is_named() -> None:
    page = (ROOT / "scripts/README.md").read_text()
    named = [name.rstrip("/") for name in re.findall(r"`([\w.*/-]+)`", page)]
    no_script = {"README.md", "__pycache__"}
    scripts = [one for one in (ROOT / "scripts").iterdir() if one.name not in no_script]
    unnamed = [one.name for one in scripts if not any(one.match(name) for name in named)]
    assert unnamed == []


def test_every_page_of_the_console_has_its_picture() -> None:
    page = (ROOT / "docs/console-and-api.md").read_text()
    for title, path in web.NAVIGATION:
        name = f"images/console-{path.strip('/') or 'overview'}.png"
        assert f"| {title} |" in page
        assert f"({name})" in page
        assert (ROOT / "docs" / name).exists()


def test_every_picture_is_shown() -> None:
    shown = "".join(page.read_text() for page in PAGES)
    assert [one.name for one in ROOT.glob("docs/images/*") if one.name not in shown] == []


def test_a_page_opens_with_what_it_is_for() -> None:
    """For whom it is, how long it takes, and where its words are explained. Three began with
    commands, or with a heading."""
    time = r"\b(seconds?|minutes?|hours?|as\s+long)\b"
    silent = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        opening = page.read_text(encoding="utf-8").partition("\n\n")[2].partition("\n\n")[0]
        words = "(terms.md)" in opening or page.name == "terms.md"
        if not (opening.startswith("For whoever") and re.search(time, opening) and words):
            silent.append(page.name)
    # That of PowerShell has its own tests.
    assert [name for name in silent if name not in ("README.md", "powershell.md")] == []


def test_mechanism_is_behind_how_it_works() -> None:
    """Of the pages that have most of it: who only follows a page need not read it."""
    for name in ("accelerate-a-server", "warm-up", "hit-ratios", "upgrade", "benchmarks", "disks"):
        page = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        heads = re.findall(r"^## (.+)$", page, re.MULTILINE)
        after = heads[heads.index("How it works") + 1 :]
        told = {"Tested against what", "What it costs and gives", "What scans do to a hot set"}
        assert set(after) <= told, name


def test_benchmarks_are_three_pages_at_half_the_length_that_one_had() -> None:
    pages = ("benchmarks", "results", "disks")
    words = sum(len((ROOT / f"docs/{one}.md").read_text().split()) for one in pages)
    assert words <= 7952 / 2


def test_links_lead_somewhere(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=str(page)):
            dead = []
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                name, _, anchor = target.partition("#")
                if "://" in target or target.startswith("mailto:"):
                    continue
                file = (page.parent / name).resolve() if name else page
                if not file.exists() or (anchor and anchor not in _anchors(file)):
                    dead.append(target)
            assert dead == []


def test_files_of_ours_that_a_page_names_exist(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=str(page)):
            top = "|".join(re.escape(one.name) for one in ROOT.iterdir() if one.is_dir())
            named = re.findall(rf"`((?:{top})/[\w./-]+\.\w+)`", page.read_text())
            gone = [name for name in named if not (ROOT / name).exists()]
            assert [name for name in gone if not (page.parent / name).exists()] == []


def _anchors(file: Path) -> set[str]:
    """As GitHub makes them from headings."""
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_commands_exist_as_they_are_written(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=str(page)):
            wrong = [
                text for text in written.commands(page.read_text()) if not written.exists(text)
            ]
            assert wrong == []


def test_examples_work_on_sql_server_or_name_postgresql() -> None:
    """Of commands, of the script in bash and of cmdlets."""
    lines = [
        line
        for page in PAGES
        for block in re.findall(r"^```.*?\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    assert [fault for line in lines for fault in sqlserver_examples.faults(line)] == []


def test_the_recording_shows_commands_that_exist_and_is_small() -> None:
    """In the order of a day, each act with what it printed; still for whoever wants no motion."""
    picture = ROOT / "docs/images/daily.svg"
    root = ElementTree.fromstring(picture.read_text())  # noqa: S314 - our own
    kind = "{http://www.w3.org/2000/svg}text"
    lines = [(str(one.get("class")).split()[0], str(one.text)) for one in root.iter(kind)]
    typed = " ".join(text[2:].rstrip("\\") if of == "command" else "\n" for of, text in lines)
    commands = [" ".join(one.split()) for one in typed.split("\n") if one.strip()]
    assert [one.partition(" --")[0] for one in commands] == [
        "hotset tier create shop",
        "hotset warmup run database:tpcc",
        "hotset report hit-ratio",
        "hotset tier status",
    ]
    assert [one for one in commands if not written.exists(one.partition(" | ")[0])] == []
    assert any(of == "said" and f"{SCHEMA}.stock" in text for of, text in lines)
    assert "prefers-reduced-motion" in picture.read_text()
    assert picture.stat().st_size < 200_000


def test_what_is_taken_for_a_command(subtests: pytest.Subtests) -> None:
    for text, exists in [
        ("hotset tier create shop --flash /dev/x --yes", True),
        ("hotset report last --format=md", True),
        ("hotset report hit-ratio --by table", True),
        ("hotset jobs list|show", True),
        ("hotset tier create shop --flush", False),
        ("hotset teir create shop", False),
        ("hotset report last --by table", False),
        ("hotset warmup plans", True),
        ("hotset warmup jobs", False),
    ]:
        with subtests.test(text=str(text), exists=str(exists)):
            assert written.exists(text) == exists


def test_what_security_says_to_be_shown_by_a_test_is() -> None:
    named = set(re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text()))
    assert len(named) > 50
    gone = [
        f"{file}::{name}"
        for file, name in sorted(named)
        if not any(
            f"\ndef {name}(" in path.read_text()
            for folder in ("cache-layer", "harness")
            if (path := ROOT / folder / "tests" / file).exists()
        )
    ]
    assert gone == []

"""Who imports whom, how many modules a folder holds, how long functions are, who asks which kind a
tier is, what goes as one."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from hotset.cli.generate import marks
from hotset.cli.groups import GROUPS, SINGLE
from hotset.core.errors import option
from hotset.core.record import Result, types_of
from hotset.core.sql import EngineName
from hotset.databases import connect
from hotset.disk.commands import Create
from hotset.operations import table
from hotset.reports.model import setup
from hotset.tier import kinds
from hotset.tier.base import TierKind
from pages.rooms import MODULES_MAX, beside, imports, modules, require_no_circle, targets, tree

ROOT = Path(__file__).parents[3]
LINES_MAX = 40


def test_no_circle_not_even_one_of_lazy_imports_or_of_types() -> None:
    require_no_circle({name: imports(name) for name in modules()}, "the project")


def test_no_circle_of_the_folders_beside_each_other() -> None:
    needed = {
        tuple(name.split(".")): [tuple(one.split(".")) for one in imports(name)]
        for name in modules()
    }
    for package in {name[:-1] for name in needed} - {()}:
        require_no_circle(beside(needed, package), ".".join(package))


def test_a_lazy_import_is_of_what_is_not_loaded_anyway() -> None:
    """Its reason is time: what a command does not need is not loaded for it."""

    @cache
    def loaded(module: str) -> frozenset[str]:
        found: set[str] = set()
        left = {module}
        while left:
            one = left.pop()
            found.add(one)
            left |= imports(one, lazy=False) - found
        return frozenset(found)

    needless = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {one}"
        for name, file in modules().items()
        for function in ast.walk(tree(file))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for one in targets(name, node)
        if one in loaded(name)
    ]
    assert not needless


def test_folders_hold_few_modules() -> None:
    held: dict[Path, int] = {}
    for file in modules().values():
        held[file.parent] = held.get(file.parent, 0) + (file.name != "__init__.py")
    assert {folder: count for folder, count in held.items() if count > MODULES_MAX} == {}


WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text())


def first_words(whole: ast.AST) -> Iterator[str]:
    """With their lines, of all strings that describe what is above them."""
    for node in ast.walk(whole):
        body = getattr(node, "body", ())
        for part in body if isinstance(body, list) else ():
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                yield f"{part.lineno}: {str(part.value.value).split(maxsplit=1)[0]}"


def test_docstrings_begin_with_what_a_thing_is() -> None:
    found = [
        f"{name}:{place}"
        for name, file in modules().items()
        for place in first_words(tree(file))
        if place.split()[1] in WORDS["first"]
    ]
    assert found == []
    assert [*first_words(ast.parse('def f():\n    """What it is."""'))] == ["2: What"]


def bound(whole: ast.AST) -> Iterator[tuple[int, str]]:
    """The names of variables, parameters and functions; a class's fields are in documents, too."""
    fields = {
        part.target
        for node in ast.walk(whole)
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if isinstance(part, ast.AnnAssign)
    }
    for node in ast.walk(whole):
        match node:
            case ast.Name(ctx=ast.Store()) if node not in fields:
                yield node.lineno, node.id
            case ast.arg():
                yield node.lineno, node.arg
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name


def is_meant_otherwise(file: Path, word: str) -> bool:
    """Whether a word of the list means something else in a file."""
    return file.relative_to(ROOT).as_posix() in WORDS["elsewhere"].get(word, ())


def production() -> list[Path]:
    return [*modules().values(), *(ROOT / "scripts").rglob("*.py")]


def test_a_name_says_what_it_holds() -> None:
    nameless = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in production()
        for line, name in bound(tree(file))
        if name.strip("_") in WORDS["names"] and not is_meant_otherwise(file, name.strip("_"))
    ]
    let = re.compile(rf"\blet \(?(mut )?({'|'.join(WORDS['names'])})\b")
    nameless += [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in (ROOT / "cache-layer/crates", ROOT / "tpcc/driver")
        for file in folder.glob("**/src/**/*.rs")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if let.search(line)
    ]
    assert nameless == []


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def f(one): ...",
        "def _there(): ...",
        "f = lambda one: 1",
        "[1 for one in x]",
        "for _, told in x: ...",
        "with x as (said, _): ...",
        "if found := x: ...",
        "match x:\n    case int() as found: ...",
    ],
)
def test_a_name_that_says_nothing_is_seen(source: str) -> None:
    assert any(name.strip("_") in WORDS["names"] for _, name in bound(ast.parse(source)))


def test_messages_and_docstrings_are_plain() -> None:
    phrases = re.compile(rf"\b({'|'.join(WORDS['phrases'])})\b")
    assert [
        f"{file.relative_to(ROOT)}:{node.lineno}: {match[0]}: write {WORDS['phrases'][match[0]]}"
        for file in production()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for match in phrases.finditer(" ".join(node.value.split()))
        if not is_meant_otherwise(file, match[0])
    ] == []


def foreign_tests(file: Path) -> list[str]:
    """The test modules of other folders that a test imports."""
    own = ".".join(("tests", *file.parent.parts[file.parts.index("tests") + 1 :]))
    imports = re.findall(r"^ *from (tests[\w.]*) import (\w*)", file.read_text(), re.MULTILINE)
    names = (re.match(r"(tests(?:\.\w+)*)\.test_\w+", ".".join(parts)) for parts in imports)
    return [name[0] for name in names if name and name[1] != own]


def test_no_test_imports_that_of_another_folder() -> None:
    """All folders' tests are one package, so it worked by luck of unique names; what several need
    is in `tests/support`, or beside it."""
    files = sorted(ROOT.glob("*/tests/**/*.py"))
    foreign = {str(file.relative_to(ROOT)): foreign_tests(file) for file in files}
    assert {name: found for name, found in foreign.items() if found} == {}


def test_a_foreign_test_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "tests/disk/test_one.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "from tests.disk.test_two import A\nfrom tests.tier.test_three import B\n"
        "from tests.support.flash_devices import FLASH\nfrom tests.lab import test_four as four\n"
    )
    assert foreign_tests(file) == ["tests.tier.test_three", "tests.lab.test_four"]


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without signature and docstring."""
    said = ast.get_docstring(function) is not None and len(function.body) > 1
    return (function.end_lineno or 0) - function.body[1 if said else 0].lineno + 1


def test_functions_fit_a_screen() -> None:
    long = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.name}, {lines(node)} lines"
        for file in production()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines(node) > LINES_MAX
    ]
    assert not long


# Those whose words are one caller's own: the command line, and what is generated of it.
CALLERS = ("hotset/cli/", "hotset/api/clients/")
TELLS = frozenset(("add_note", "message", "note", "say", "warn"))
"""Who is told something by these hears it from every caller: a job's messages travel."""
READS = frozenset(("compile", "partition", "removeprefix", "rpartition", "search", "split"))
"""Methods that take apart what another program said."""
OTHER_PROGRAM = re.compile(r"`(?!hotset )[a-z-]+ [^`]*|^--[a-z-]+(=.*)?$")
"""One as a user types it, and an argument of one that hotset runs."""
ONLY_TYPED = ("hotset lab shell",)
"""What is nowhere but on a command line."""


@cache
def own_words() -> re.Pattern[str]:
    """A command of hotset's, or an option of one; `losetup --find` is neither."""
    options = {
        word
        for one in table.every()
        for name, field in one.request.model_fields.items()
        if not marks(field).argument
        for word in (option(name), option(f"no_{name}"))
    }
    known = "|".join(sorted(map(re.escape, options)))
    commands = "|".join((*GROUPS, *SINGLE, "console", "jobs", "top"))
    return re.compile(rf"\bhotset ({commands})\b|(?<![\w-])({known})(?![\w-])")


@cache
def failures() -> frozenset[str]:
    """The classes of errors, and what else becomes one, by their names."""
    bases = {
        node.name: [getattr(one, "id", getattr(one, "attr", "")) for one in node.bases]
        for file in modules().values()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ClassDef)
    }
    found = {"HotsetError", "ValueError", "Unavailable"}
    while more := {name for name, over in bases.items() if found & set(over)} - found:
        found |= more
    return frozenset(found)


def is_told(node: ast.AST) -> bool:
    """Whether somebody who called hotset reads what is in it."""
    if isinstance(node, ast.Raise):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return name in failures() | TELLS


def text_in(told: ast.AST, named: Mapping[str, list[ast.expr]]) -> Iterator[ast.Constant]:
    """The text in it, also by way of a variable, or of a function of the module that returns it."""
    left, seen = [told], set[str]()
    while left:
        node = left.pop()
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in READS:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            left += named.get(node.id, [])
        left += ast.iter_child_nodes(node)


def named_in(whole: ast.Module) -> dict[str, list[ast.expr]]:
    """What the variables and functions of a module come to."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(whole):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        if isinstance(node, ast.FunctionDef):
            values = [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]
            found.setdefault(node.name, []).extend(one for one in values if one is not None)
    return found


def words_of_one_caller(whole: ast.Module) -> set[tuple[int, str]]:
    """Messages that name a command or option, with their lines."""
    named = named_in(whole)
    return {
        (one.lineno, str(one.value))
        for node in ast.walk(whole)
        if is_told(node)
        for one in text_in(node, named)
        if own_words().search(OTHER_PROGRAM.sub("", str(one.value)))
        if not any(typed in str(one.value) for typed in ONLY_TYPED)
    }


def test_what_a_report_advises_names_no_command() -> None:
    """A report is read in a browser, too, and by callers of the API and of the cmdlets."""
    named = [
        f"{name}:{node.lineno}: {node.value}"
        for name, file in modules().items()
        if name.startswith("hotset.reports.analysis.")
        for part in ast.walk(tree(file))
        if isinstance(part, ast.Assign | ast.AnnAssign | ast.Return | ast.Call)
        for node in ast.walk(part)
        if isinstance(node, ast.Constant)
        if isinstance(node.value, str) and own_words().search(node.value)
    ]
    assert not named


def test_messages_name_no_command_and_no_option() -> None:
    """They reach callers of the API, too, who have no ``--replace``: what helps is a `Remedy`, and
    what is wrong a field, which each caller words."""
    named = [
        f"{path}:{line}: {text}"
        for path, file in ((one.relative_to(ROOT).as_posix(), one) for one in modules().values())
        if not any(caller in path for caller in CALLERS)
        for line, text in sorted(words_of_one_caller(tree(file)))
    ]
    assert not named


@pytest.mark.parametrize(
    "source",
    [
        'raise ValueError(f"{x} is there: add --yes")',
        'def refused(): return NotFoundError("`hotset tier create` makes one")',
        'text = "the next run with --fresh drops it"\nreport.warn(text)',
        'def advice(): return "raise --seconds"\ndef do(): raise HotsetError(advice())',
    ],
)
def test_a_message_is_found_wherever_its_text_is(source: str) -> None:
    assert words_of_one_caller(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        'raise ValueError("show it as a device (losetup --find --show FILE)")',
        'raise TierFailedError(said.partition(", or give --yes")[0])',
        'run(["fio", "--size", "--seconds=9"])',
    ],
)
def test_another_programs_options_are_its_own(source: str) -> None:
    assert not words_of_one_caller(ast.parse(source))


def tier_classes() -> set[str]:
    """The names of all classes of tiers, whatever package they are in."""
    classes = [
        one
        for file in modules().values()
        for one in ast.walk(tree(file))
        if isinstance(one, ast.ClassDef)
    ]
    found = {one.name for one in classes if one.name.endswith("Tier")}
    while True:
        more = {
            one.name
            for one in classes
            if any(isinstance(base, ast.Name) and base.id in found for base in one.bases)
        }
        if more <= found:
            return found
        found |= more


def asked_by_name(node: ast.AST, names: Collection[str]) -> bool:
    """Whether a comparison, a case or a table by names asks which of them one is."""

    def named(one: ast.AST) -> bool:
        return isinstance(one, ast.Constant) and one.value in names

    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
            inner = [one for side in sides for one in getattr(side, "elts", [])]
            return any(map(named, [*sides, *inner]))
        case ast.MatchValue():
            return named(node.value)
        case ast.Dict():
            return sum(map(named, filter(None, node.keys))) > 1
        case _:
            return False


def asked_by_class(node: ast.AST, classes: Collection[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass")):
            asked: ast.AST = node.args[1]
        case ast.MatchClass():
            asked = node.cls
        case _:
            return False
    words = [getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(asked)]
    return any(word in classes for word in words)


def asked_outside(package: str, names: Collection[str], classes: Collection[str]) -> list[str]:
    """Where modules and pages ask which of several one is, by its name or its class."""
    asked = [
        f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for name, file in modules().items()
        if not name.startswith(package)
        for node in ast.walk(tree(file))
        if asked_by_name(node, names) or asked_by_class(node, classes)
    ]
    quoted = re.compile(rf"(==|!=|\bin\b)[^%}}]*[\"']({'|'.join(names)})[\"']")
    return asked + [
        f"{page.relative_to(ROOT)}: {line.strip()}"
        for page in (ROOT / "harness/hotset/console/templates").glob("*.html")
        for line in page.read_text(encoding="utf-8").splitlines()
        if quoted.search(line)
    ]


def test_nobody_asks_which_kind_a_tier_is() -> None:
    """A kind is a folder and a line in the table of kinds: who asked for one by its name, or by its
    class, took every other one for dm-cache. What differs is asked of the kind and of its tiers."""
    classes = tier_classes()
    assert {"DmCache", "Bcache", "Userspace", "ModelledTier"} <= classes
    assert not asked_outside("hotset.tier.", set(kinds.names()), classes)


def test_nobody_asks_which_product_a_database_is() -> None:
    """A product is a folder and a line in the table of products: who asked for one by its name, or
    by its class, took every other one for PostgreSQL or SQL Server."""
    classes = {
        node.name
        for name, file in modules().items()
        if name.startswith(("hotset.databases.postgres.", "hotset.databases.sqlserver."))
        for node in tree(file).body
        if isinstance(node, ast.ClassDef)
    }
    assert {"PostgresDatabase", "SqlServerDatabase"} <= classes
    assert not asked_outside("hotset.databases.", set(get_args(EngineName)), classes)


def test_the_table_of_products_has_every_product_that_can_be_named() -> None:
    table = {product.name: product.load() for product in connect.PRODUCTS}
    assert set(table) == set(get_args(EngineName))
    assert all(database.engine == name for name, database in table.items())


def test_the_table_of_kinds_has_every_kind_that_can_be_named() -> None:
    assert set(kinds.names()) == set(get_args(TierKind))
    assert set(kinds.names()) == set(get_args(Create.model_fields["kind"].annotation))
    assert set(kinds.names()) == set(get_args(setup.Tier.model_fields["kind"].annotation))


# What is below the words of reports, or beside them.
OWN_SHARES = ("harness/hotset/load/served.py",)


def test_one_place_writes_shares() -> None:
    """There were `97.3 %` and `97.3%`, and a hyphen or a dash for what is not known."""
    others = [
        f"{path}:{node.lineno}"
        for path, file in ((one.relative_to(ROOT).as_posix(), one) for one in modules().values())
        if path not in OWN_SHARES
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None
        if ast.unparse(node.format_spec).rstrip("'\"").endswith("%")
    ]
    assert not others


ATTACHED = frozenset(("Machine", "FlashDevice", "Disk"))
"""What `AttachedDisk` holds."""


def words_of(annotations: Iterable[ast.expr | None]) -> set[str]:
    """The names in annotations; not those of what a callback takes and gives."""
    found: set[str] = set()
    left: list[ast.AST] = [one for one in annotations if one is not None]
    while left:
        node = left.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        if not (isinstance(node, ast.Subscript) and "Callable" in ast.unparse(node.value)):
            left += ast.iter_child_nodes(node)
    return found


def is_side_by_side(node: ast.AST) -> bool:
    """Whether a function takes machine, flash device and disk, or gives the last two; or a class
    holds all three."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        taken = words_of(one.annotation for one in arguments)
        return taken >= ATTACHED or words_of([node.returns]) >= ATTACHED - {"Machine"}
    if isinstance(node, ast.ClassDef):
        fields = (one.annotation for one in node.body if isinstance(one, ast.AnnAssign))
        return words_of(fields) >= ATTACHED and node.name != "AttachedDisk"
    return False


def test_machine_flash_and_disk_go_as_one() -> None:
    """76 functions took them side by side: what an operation on a disk needs besides went through
    all of them, and a flash device could go with a disk as another one knew it."""
    apart = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for file in production()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if is_side_by_side(node)
    ]
    assert not apart


@pytest.mark.parametrize(
    "source",
    [
        "def f(machine: Machine, flash: FlashDevice, disk: Disk) -> None: ...",
        "def f(there: Machine, *, on: FlashDevice | None, one: Disk) -> None: ...",
        "def f(machine: Machine, name: str) -> tuple[FlashDevice, Disk]: ...",
        "class Fill:\n    machine: Machine\n    flash: FlashDevice\n    disk: Disk",
    ],
)
def test_they_are_seen_side_by_side(source: str) -> None:
    assert is_side_by_side(ast.parse(source).body[0])


# Who asks for a form by its name is told it by the caller: a list of the command line's own, and
# the environment.
FORMS_BY_NAME = frozenset(("hotset.cli.jobs", "hotset.core.words", "hotset.core.progress"))


def record_modules() -> dict[str, ast.Module]:
    """Where results and their records are described."""
    kinds: set[type] = set()
    left: list[type] = [part for one in table.every() for part in one.result.__mro__]
    left += [one.result.record() for one in table.every()]
    while left:
        kind = left.pop()
        if kind in kinds or not kind.__module__.startswith("hotset."):
            continue
        kinds.add(kind)
        if is_dataclass(kind) and not issubclass(kind, Result):
            hints = list(types_of(kind).values())
            while hints:
                hint = hints.pop()
                hints += get_args(hint)
                left += [hint] if isinstance(hint, type) else []
    return {name: tree(modules()[name]) for name in {kind.__module__ for kind in kinds}}


def test_a_result_is_described_by_one_record(subtests: pytest.Subtests) -> None:
    """Else its JSON, its CSV and its schema are three descriptions, of which two are not kept."""
    for one in table.every():
        with subtests.test(one=str(one)):
            record = one.result.record()
            assert one.result.document is Result.document, "a result writes JSON by itself"
            if is_dataclass(record):
                assert record.__dataclass_params__.frozen  # type: ignore[attr-defined]
            else:
                assert issubclass(record, BaseModel)
            assert record.__module__ in modules(), "a record is a class that can be read"


def test_no_result_writes_or_reads_json_by_hand() -> None:
    """It has a record: JSON comes from that, and tables for people are made of it."""
    found = []
    for name, file in modules().items():
        nodes = ast.walk(tree(file))
        found += [
            f"{name}:{node.lineno}: asks for a form"
            for node in nodes
            if isinstance(node, ast.Compare)
            and any(isinstance(at, ast.Constant) and at.value == "json" for at in node.comparators)
            and name not in FORMS_BY_NAME
        ]
    for name, whole in record_modules().items():
        found += [
            f"{name}:{node.lineno}: JSON by hand"
            for node in ast.walk(whole)
            if isinstance(node, ast.Dict)
            and any(
                isinstance(key, ast.Constant) and key.value == "schema_version" for key in node.keys
            )
        ]
    results = (
        part
        for whole in record_modules().values()
        for part in whole.body
        if isinstance(part, ast.ClassDef)
        and any("Recorded" in ast.unparse(one) for one in part.bases)
    )
    found += [
        f"{part.name}: JSON by hand"
        for part in results
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and node.id in ("json", "asdict")
    ]
    assert not found

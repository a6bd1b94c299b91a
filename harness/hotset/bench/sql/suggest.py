"""Scripts and weights out of what a server's users ask most, values drawn from the tables' own
statistics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hotset.core.errors import RequestError
from hotset.core.record import extended
from hotset.core.sql import Aborted
from hotset.databases.connect import SqlDatabase
from hotset.databases.costly import Catalog, Costly, Known, Parameter, bare
from hotset.databases.postgres.costly import PostgresCatalog
from hotset.databases.sqlserver.client import SqlServerDatabase
from hotset.databases.sqlserver.costly import SqlServerCatalog
from hotset.load.record import WindowOptions
from hotset.load.workload import UserFailed
from hotset.reports.model import words
from hotset.reports.model.schema import Versioned

from .users import Source, SqlWorkload

LIMITS = (
    "Statements are known one by one: which of them made up one transaction, in which order, with"
    " which pauses, is not.",
    "Each value is drawn by itself, as often as the column holds it: which values belonged"
    " together, and which rows users asked for more than others, is not known.",
    "What guessed values find may be nothing at all: read the scripts before you trust a figure.",
)
_COMMON = 10
_WHOLE = 10_000
_LIST = 100


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A script for one statement.

    :ivar weight: its share of the calls, of 1,000.
    :ivar guessed: parameters of which nothing is known.
    """

    file: str
    weight: int
    calls: int
    mean_ms: float
    time_share: float
    guessed: int
    text: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A costly statement, or several, that became no script, and why.

    :ivar time_share: of the time that all statements of the database took.
    """

    statement: str
    reason: str
    time_share: float


@dataclass(frozen=True, slots=True)
class Suggested:
    scripts: tuple[Suggestion, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class SqlSuggestion(Suggested, Versioned):
    """Scripts that were written. ``command`` runs them; ``limits`` is what they cannot tell."""

    folder: str
    command: str
    limits: tuple[str, ...]

    @classmethod
    def of(cls, found: Suggested, folder: Path) -> SqlSuggestion:
        return extended(
            cls, found, folder=str(folder), command=command(found, folder), limits=LIMITS
        )


def suggest(database: SqlDatabase, top: int) -> Suggested:
    """Scripts for the statements that took the most time.

    :raises PrerequisiteMissingError: the server does not count statements.
    :raises RequestError: it counted none, or shows none to this user.
    """
    with _catalog(database) as catalog:
        found = catalog.statements(top * _CANDIDATES)
        if not found:
            raise RequestError("the server has counted no statement of this database yet")
        taken: list[Costly] = []
        scripts: list[Suggestion] = []
        left_out: list[LeftOut] = []
        for one in found:
            if len(scripts) == top:
                break
            taken.append(one)
            made = _made(catalog, database, one, len(scripts) + 1)
            if isinstance(made, Suggestion):
                scripts.append(made)
            else:
                left_out.append(made)
        if not scripts and any(map(catalog.is_hidden, found)):
            raise RequestError(f"the statements of other roles are hidden: {catalog.grant}")
    return Suggested(tuple(_weighed(scripts)), (*_told(left_out), *_beyond(taken)))


_CANDIDATES = 20
"""So many statements are looked at for each script that is wanted, at most."""
_TOLD = 0.001
"""What takes a smaller share of the time is told as a number alone."""


def _told(left_out: Sequence[LeftOut]) -> Iterator[LeftOut]:
    small = [one for one in left_out if one.time_share < _TOLD]
    yield from (one for one in left_out if one.time_share >= _TOLD)
    if small:
        share = sum(one.time_share for one in small)
        yield LeftOut(
            words.plural(len(small), "other statement"), "each took less than 0.1 %", share
        )


def _beyond(taken: Sequence[Costly]) -> Iterator[LeftOut]:
    share = 1 - sum(one.share for one in taken)
    if share > _TOLD / 10:
        yield LeftOut("all other statements", "they took less time; a larger top takes more", share)


def _weighed(scripts: Sequence[Suggestion]) -> Iterator[Suggestion]:
    calls = sum(script.calls for script in scripts) or 1
    return (
        replace(script, weight=max(1, round(1000 * script.calls / calls))) for script in scripts
    )


def _made(catalog: Catalog, database: SqlDatabase, one: Costly, place: int) -> Suggestion | LeftOut:
    """A script that runs, or why there is none."""
    try:
        reason = catalog.against(one)
        if reason is None:
            made = _script(catalog, one, place)
            _try(database, made)
            return made
    except Aborted as refused:
        reason = refused.detail or refused.cause
    except (RequestError, UserFailed) as error:
        reason = f"no script runs it: {error}"
    return LeftOut(_short(bare(one.text)), reason, one.share)


_LIMITS = {"postgres": "SET LOCAL statement_timeout = '10s'; SET LOCAL lock_timeout = '2s'"}
_TOO_LONG = ("error 57014", "lock timeout")


def _try(database: SqlDatabase, made: Suggestion) -> None:
    """Run it once and take back what it did.

    :raises Aborted: the server refuses it; what takes it too long is no fault of the script's.
    """
    source = Source(made.file, made.file, 1, made.text)
    options = WindowOptions(users=1, rampup_s=0, duration_s=1)
    user = SqlWorkload(database, (source,), options, {}, "prepared").user(0)
    try:
        user.try_out(_LIMITS.get(database.engine, ""))
    except Aborted as refused:
        if refused.cause not in _TOO_LONG:
            raise
    finally:
        user.close()


@contextmanager
def _catalog(database: SqlDatabase) -> Iterator[Catalog]:
    if isinstance(database, SqlServerDatabase):
        with closing(database.session()) as session:
            yield SqlServerCatalog(session)
        return
    with closing(database.session()) as session:
        yield PostgresCatalog(session, database.user)


def write(suggested: Suggested, folder: Path) -> None:
    """Write the scripts; nothing that is there is overwritten.

    :raises RequestError: the folder cannot be written to, or holds one of the files.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for script in suggested.scripts:
            if (folder / script.file).exists():
                raise RequestError(
                    f"{folder / script.file} is there already: name a new folder", field="folder"
                )
        for script in suggested.scripts:
            (folder / script.file).write_text(script.text, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{folder}: {error.strerror}", field="folder") from None


def _script(catalog: Catalog, one: Costly, place: int) -> Suggestion:
    values = {
        parameter.mark: _drawn(catalog, place, parameter)
        for place, parameter in enumerate(catalog.parameters(one), 1)
    }
    settings = [line for value in values.values() for line in value.lines]
    statement = _filled(bare(one.text).strip().rstrip(";"), catalog.mark, values)
    share = words.percent(one.share, 0)
    head = f"-- {one.calls:,} calls, {one.mean_ms:.3f} ms each, {share} of the time"
    return Suggestion(
        file=f"{place:02}_{_name(one.text)}.sql",
        weight=1,
        calls=one.calls,
        mean_ms=one.mean_ms,
        time_share=one.share,
        guessed=sum(value.guessed for value in values.values()),
        text="\n".join([head, *settings, f"{statement};"]) + "\n",
    )


def _filled(text: str, mark: re.Pattern[str], values: Mapping[str, _Drawn]) -> str:
    """The text with values in place of its parameters; strings stay as they are."""
    parts = re.split(r"('(?:[^']|'')*')", text)
    parts[::2] = [mark.sub(lambda match: values[match[0]].term, part) for part in parts[::2]]
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """How a parameter's value is drawn: lines before the statement, and what stands in it."""

    lines: tuple[str, ...]
    term: str
    guessed: bool = False


def _drawn(catalog: Catalog, place: int, parameter: Parameter) -> _Drawn:
    column = parameter.column
    about = None if column is None else catalog.look_up(column)
    line = f"-- p{place}: a list, of which one value is drawn: how many it had is not known"
    if parameter.is_list:
        one = _drawn(catalog, place, replace(parameter, is_list=False))
        return replace(one, lines=(line, *one.lines))
    if parameter.category == "A" and about is not None and about.category != "A":
        one = _drawn(catalog, place, replace(parameter, category=about.category))
        return replace(one, lines=(line, *one.lines), term=f"ARRAY[{one.term}]::{parameter.kind}")
    if about is None or not (about.common or about.bounds):
        return _guess(catalog, place, parameter)
    if parameter.category == "N" and all(map(_is_int, about.values())):
        return _numbers(place, f"{column}", about)
    return _listed(catalog, place, f"{column}", about)


def _guess(catalog: Catalog, place: int, parameter: Parameter) -> _Drawn:
    what = "nothing is known of its column" if parameter.column else "it belongs to no column"
    if parameter.sample:
        line = f"-- p{place}: {what}, the value that its plan was made for"
        return _Drawn((line,), _sample(catalog, parameter.sample), guessed=True)
    line = f"-- p{place}: {what}, guessed"
    if parameter.category == "N":
        return _Drawn((line, f"\\set p{place} random(1, 100)"), f":p{place}", guessed=True)
    return _Drawn((line,), catalog.guess(parameter), guessed=True)


def _sample(catalog: Catalog, value: str) -> str:
    """A value as the plan has it: a number, or quoted text."""
    quoted = re.fullmatch(r"N?'(.*)'", value, re.S)
    return catalog.literal(quoted[1].replace("''", "'")) if quoted else value


def _numbers(place: int, column: str, about: Known) -> _Drawn:
    """Whole numbers: the most common ones by their shares, the others evenly."""
    every = [int(value) for value in about.values()]
    low, high = min(every), max(every)
    name, drawn = f"p{place}", f"d{place}"
    lines = [f"-- {name}: {column}, {low} to {high} by its statistics"]
    cases, upto = [], 0.0
    for value, share in about.common[:_COMMON]:
        upto += share
        cases.append(f"when :{drawn} <= {round(upto * _WHOLE)} then {int(value)}")
    if not cases:
        return _Drawn((*lines, f"\\set {name} random({low}, {high})"), f":{name}")
    rest = f"else random({low}, {high}) end"
    lines += [f"\\set {drawn} random(1, {_WHOLE})", f"\\set {name} case {' '.join(cases)} {rest}"]
    return _Drawn(tuple(lines), f":{name}")


def _listed(catalog: Catalog, place: int, column: str, about: Known) -> _Drawn:
    """Values of any type: a list of those that the statistics have, the common ones by their
    shares."""
    common, rest = about.common[:_LIST], about.bounds[:_LIST]
    count, share = len(common), sum(share for _, share in common)
    literals = [catalog.literal(value) for value in (*(value for value, _ in common), *rest)]
    lines = [f"-- p{place}: {column}, {count + len(rest)} values of its statistics"]
    if common and rest:
        draws = f"random(1, {count}) else random({count + 1}, {count + len(rest)})"
        least = round(share * _WHOLE)
        choose = f"case when random(1, {_WHOLE}) <= {least} then {draws} end"
    else:
        choose = f"random(1, {count + len(rest)})"
    lines.append(f"\\set p{place} {choose}")
    if about.category == "A":  # of lists there is no list
        return _Drawn(
            tuple(lines), f"{catalog.pick_literal(literals, 'text', f':p{place}')}::{about.kind}"
        )
    return _Drawn(tuple(lines), catalog.pick_literal(literals, about.kind, f":p{place}"))


def _is_int(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,18}", text) is not None


_TABLE = re.compile(r"\b(?:from|into|update)\s+(?:only\s+)?([\w.\"]+)", re.I)


def _name(text: str) -> str:
    """
    >>> _name('SELECT a FROM "Shop".item WHERE id = $1'), _name("UPDATE item SET a = $1")
    ('select_item', 'update_item')
    """
    verb = re.search(r"\b(select|insert|update|delete|merge|values)\b", text, re.I)
    table = _TABLE.search(text)
    words = [found[1].rpartition(".")[2] for found in (verb, table) if found]
    return re.sub(r"[^a-z0-9_]+", "", "_".join(words).lower())[:40] or "statement"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"


def command(suggested: Suggested, folder: Path) -> str:
    """What runs the scripts."""
    scripts: Sequence[str] = [
        f"--script {folder / script.file}@{script.weight}" for script in suggested.scripts
    ]
    return " ".join(["hotset sql run", *scripts])

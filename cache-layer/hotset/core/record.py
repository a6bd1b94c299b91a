"""Records of results: a frozen dataclass is the one description of a result.

Its JSON, the columns of its CSV, the schemas of the API and the views of PowerShell all come from
its fields, and from what is :class:`derived` of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from functools import cache
from pathlib import PurePath
from pkgutil import resolve_name
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    final,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter
    from rich.console import Console


Value = TypeVar("Value")
Whole = TypeVar("Whole")
_PLURAL = (list, tuple, dict)


class Result:
    """Result of an operation: the record of its subject, with how it is shown."""

    __slots__ = ()
    csv_rows: ClassVar[str] = ""
    """The list whose entries are the lines of CSV; none: the record is the line."""
    described_by: ClassVar[str] = ""
    """``module:Class`` within hotset, of another record; it is loaded when it is asked for."""

    @classmethod
    def record(cls) -> type[Any]:
        """The dataclass or model that describes what :meth:`document` holds."""
        kind: type[Any] = resolve_name(f"hotset.{cls.described_by}") if cls.described_by else cls
        return kind

    def to_record(self) -> Any:  # noqa: ANN401 - of the type that record() tells
        """Return the value of the :meth:`record` type."""
        return self

    @final
    def document(self) -> dict[str, Any]:
        """Return the result as JSON has it."""
        return document_of(self.to_record())

    def to_text(self) -> str:
        """For people."""
        raise NotImplementedError

    def show(self, console: Console) -> None:
        """Write it for people, whatever the console's width."""
        if text := self.to_text():
            console.file.write(text if text.endswith("\n") else text + "\n")

    def csv(self) -> str:
        """Rows with a header: the single values of the record."""
        from .words import csv_text

        document, kind = self.document(), self.record()
        lines = [document]
        if self.csv_rows:
            lines, kind = document[self.csv_rows], get_args(types_of(kind)[self.csv_rows])[0]
        columns = [name for name in columns_of(kind) if name != "schema_version"]
        return csv_text(columns, ([_cell(line[name]) for name in columns] for line in lines))

    def failure(self) -> Exception | None:
        """Return the failure that the result amounts to, if any; the result is kept."""
        return None

    def figures(self) -> Mapping[str, str]:
        """The values that one asks for first, by their names, in words."""
        return {}


def _cell(value: object) -> object:
    return "; ".join(value) if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class Record(Result):
    """A result of a version. A subject whose JSON has a history states its own."""

    schema_version: int = 1


class derived(Generic[Value]):
    """A property that belongs to the record: it is in its JSON as a field is, after the fields.

    >>> @dataclass(frozen=True)
    ... class Row:
    ...     hits: int
    ...
    ...     @derived
    ...     def twice(self) -> int:
    ...         return 2 * self.hits
    >>> Row(2).twice, document_of(Row(2)), columns_of(Row)
    (4, {'hits': 2, 'twice': 4}, ('hits', 'twice'))
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Value:
        return self if instance is None else self.function(instance)


def extend(kind: type[Whole], record: Any, **more: Any) -> Whole:  # noqa: ANN401 - its own
    """A record of a type that has more fields than one there is; ``more`` are these."""
    return kind(**{field.name: getattr(record, field.name) for field in fields(record)}, **more)


def document_of(record: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass or a model
    """A record as JSON has it: sizes as numbers, paths and times as text, tuples as lists."""
    document: dict[str, Any] = _plain(record)
    return document


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a record holds
    plain = value
    match value:
        case None | bool() | float():
            pass
        case int():
            plain = int(value)
        case str() | PurePath():
            plain = str(value)
        case date():
            plain = value.isoformat().replace("+00:00", "Z")
        case Mapping():
            plain = {str(key): _plain(part) for key, part in value.items()}
        case Sequence():
            plain = [_plain(part) for part in value]
        case _ if is_dataclass(value):
            plain = {name: _plain(getattr(value, name)) for name in types_of(type(value))}
        case _:
            plain = value.model_dump(mode="json")
    return plain


def record_of(kind: type[Whole], document: object) -> Whole:
    """A record that was written as JSON; what is derived of its fields is worked out again.

    >>> @dataclass(frozen=True)
    ... class Row:
    ...     sizes: tuple[int, ...]
    >>> record_of(Row, document_of(Row((1, 2))))
    Row(sizes=(1, 2))

    :param document: as :func:`document_of` gave it, here or in another version of hotset.
    :raises ValueError: it does not hold what the record needs.
    """
    # As JSON, in which a tuple is a list also where types are not to be changed.
    key: Any = kind
    record: Whole = _adapter(key).validate_json(json.dumps(document))
    return record


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a type
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def convert(kind: type[Whole], request: object) -> Whole:
    """A record of a subject, of a request's fields of the same names: texts become sizes and paths.

    >>> @dataclass(frozen=True)
    ... class Wanted:
    ...     folder: PurePath
    >>> convert(Wanted, Wanted("/srv"))
    Wanted(folder=PurePosixPath('/srv'))
    """
    key: Any = kind
    record: Whole = _adapter(key).validate_python(
        {field.name: getattr(request, field.name) for field in fields(key)}
    )
    return record


def types_of(kind: type) -> dict[str, Any]:
    """The types of all that the JSON has of a record, by name and in its order."""
    key: Any = kind
    return _types_of(key)


@cache
def _types_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    hints = get_type_hints(kind, include_extras=True)
    if not is_dataclass(kind):
        return {name: hints[name] for name in kind.model_fields}
    types = {field.name: hints[field.name] for field in fields(kind)}
    bases: tuple[type, ...] = kind.__mro__  # type: ignore[union-attr]
    for base in reversed(bases):
        for name, attribute in vars(base).items():
            if isinstance(attribute, derived):
                types[name] = get_type_hints(attribute.function, include_extras=True)["return"]
    return types


def columns_of(kind: type) -> tuple[str, ...]:
    """The names of what fits a cell, in their order: single values and lists of texts, neither
    other records nor lists of them."""
    return tuple(name for name, hint in types_of(kind).items() if _is_cell(hint))


def _is_cell(hint: Any) -> bool:  # noqa: ANN401 - a type
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        return parts[0] is str or get_origin(parts[0]) is Literal
    if origin is Annotated:
        return _is_cell(parts[0])
    if origin in (Union, UnionType):
        return all(map(_is_cell, parts))
    return origin is Literal or not (origin or hint in _PLURAL or is_dataclass(hint))


def model_of(kind: type) -> type[BaseModel]:
    """A record as a model of pydantic's, which tells its schema; it has no other fields."""
    key: Any = kind
    return _model_of(key)


@cache
def _model_of(kind: Any) -> type[BaseModel]:  # noqa: ANN401 - a type
    from pydantic import BaseModel, ConfigDict, create_model

    if issubclass(kind, BaseModel):
        whole: type[BaseModel] = kind
        return whole
    definitions: dict[str, Any] = {
        name: (_model(hint), ...) for name, hint in types_of(kind).items()
    }
    config, where = ConfigDict(extra="forbid"), kind.__module__
    made: type[BaseModel] = create_model(
        kind.__name__, __config__=config, __module__=where, **definitions
    )
    return made


def _model(hint: Any) -> Any:  # noqa: ANN401 - a type
    """With models in place of the dataclasses in it; JSON has sizes as numbers."""
    if isinstance(hint, type) and is_dataclass(hint):
        return model_of(hint)
    if isinstance(hint, type) and issubclass(hint, int) and hint is not bool:
        return int
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (None, Literal, Annotated):
        return hint
    made = tuple(map(_model, parts))
    return Union[made] if origin in (Union, UnionType) else origin[made]  # noqa: UP007 - at run time


SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Versioned(Record):
    """A result whose JSON goes by this version."""

    schema_version: int = SCHEMA_VERSION


def unknown(place: object, what: str, without: str) -> str:
    """Format the error for a file of another version: both ways out, and what the second loses.

    :param what: describes the part that is not known.
    :param without: how it goes on once the file was moved away.

    >>> unknown("heat.sqlite", expected_version(9, 1), "and count again")
    'heat.sqlite was written by another version of hotset (format 9, this one reads 1): use that \
one, or move the file away, and count again'
    """
    return (
        f"{place} was written by another version of hotset ({what}): use that one, or move the file"
        f" away, {without}"
    )


def expected_version(version: object, known: int) -> str:
    """Describe the mismatch of a file's format number."""
    return f"format {version!r}, this one reads {known}"


def strange(fields: Mapping[str, object], known: Collection[str]) -> str:
    """Describe the first unknown field of a record; empty: all are known."""
    unknown = [name for name in fields if name not in known]
    return f"its field {unknown[0]!r} is not known here" if unknown else ""

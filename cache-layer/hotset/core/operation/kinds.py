"""What a request's field is, as callers without types see it: a command line, a URL, a form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class FieldKind:
    """A field's type without its wrappings.

    :ivar base: ``bool``, ``int``, ``float``, ``Path``, a ``Literal``, or ``str`` for all else.
    :ivar optional: it may be None.
    :ivar metadata: all constraints on the way to it.
    """

    base: Any
    is_list: bool
    optional: bool
    secret: bool
    metadata: tuple[Any, ...]

    @classmethod
    def from_field(cls, field: FieldInfo) -> FieldKind:
        metadata, optional, is_list = list(field.metadata), False, False
        found: Any = field.annotation
        while True:
            origin = get_origin(found)
            if origin is Annotated:
                found, *more = get_args(found)
                metadata += more
            elif origin in (Union, UnionType):
                optional = True
                found = next(arg for arg in get_args(found) if arg is not NoneType)
            elif origin is list:
                is_list, found = True, get_args(found)[0]
            else:
                break
        plain = found if found in (bool, int, float, Path) or origin is Literal else str
        return cls(plain, is_list, optional, found is SecretStr, tuple(metadata))

    def limit(self, name: str) -> Any:  # noqa: ANN401 - a number
        """``ge``, ``le`` or ``min_length`` of the constraints, None where there is none."""
        found = (getattr(one, name, None) for one in self.metadata)
        return next((one for one in found if one is not None), None)

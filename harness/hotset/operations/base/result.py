"""What operations return. A result has three forms: for programs, for spreadsheets, for people."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console


class Result(ABC):
    """What an operation found or did."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def record(cls) -> type[BaseModel]:
        """What :meth:`document` holds, for callers that want to know beforehand."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """As JSON has it, with its ``schema_version``."""

    @abstractmethod
    def show(self, console: Console) -> None:
        """Write it for people."""

    @abstractmethod
    def csv(self) -> str:
        """Rows with a header."""

    def failure(self) -> Exception | None:
        """What the result amounts to, where that is a failure although there is a result."""
        return None

    def figures(self) -> Mapping[str, str]:
        """The values that one asks for first, by their names, in words."""
        return {}


class Text(Result):
    """A result of a subject that writes all three forms by itself."""

    __slots__ = ()

    @abstractmethod
    def text(self, form: str) -> str:
        """:param form: ``table``, ``json`` or ``csv``."""

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text("json"))
        return found

    def show(self, console: Console) -> None:
        write(console, self.text("table"))

    def csv(self) -> str:
        return self.text("csv")


@dataclass(frozen=True, slots=True)
class Lines(Result):
    """What was done was told by messages; ``lines`` are what else there is to say, such as the
    commands of a dry run. It has one form only."""

    lines: tuple[str, ...] = ()

    @classmethod
    def record(cls) -> type[BaseModel]:
        from . import records

        found: type[BaseModel] = records.part("Lines", lines=list[str])
        return found

    def document(self) -> dict[str, Any]:
        return {"lines": list(self.lines)}

    def show(self, console: Console) -> None:
        if self.lines:
            write(console, "\n".join(self.lines))

    def csv(self) -> str:
        return "\n".join(self.lines)


def write(console: Console, text: str) -> None:
    """A text as it is, whatever the console's width."""
    console.file.write(text if text.endswith("\n") else text + "\n")

"""Optional parts of an installation and how to add them: the one place that knows.

The base is what a server with flash needs. All else is in an *extra* of the package. A module of
one is imported where it is used, and its absence is reported with the extra to add.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from types import MappingProxyType

from .errors import PrerequisiteError


class Extra(StrEnum):
    """Extras of the package, as ``pyproject.toml`` names them."""

    BENCH = "bench"
    REPORT = "report"
    CONSOLE = "console"
    SQLSERVER = "sqlserver"
    CLUSTER = "cluster"
    SEARCH = "search"


MODULES: Mapping[Extra, tuple[str, ...]] = MappingProxyType(
    {
        Extra.BENCH: ("numpy", "duckdb", "hdrh"),
        Extra.REPORT: ("altair", "vl_convert", "jinja2", "numpy", "hdrh"),
        Extra.CONSOLE: (
            *("starlette", "fastapi", "sse_starlette", "uvicorn", "argon2", "jinja2"),
            *("python_multipart", "numpy", "hdrh"),
        ),
        Extra.SQLSERVER: ("pyodbc",),
        Extra.CLUSTER: ("distributed",),
        Extra.SEARCH: ("tantivy",),
    }
)
"""The top-level modules that each brings. Of one that several bring, the first is named."""


PACKAGED = "/usr/lib/hotset"
"""Where the Linux packages have Python's environment."""
_IN_ANOTHER_PACKAGE = frozenset((Extra.BENCH, Extra.REPORT, Extra.SQLSERVER))


class ExtraMissingError(PrerequisiteError):
    """Something here needs an extra that is not installed; the message names it."""


def require(*extras: Extra) -> None:
    """For what would find out too late, after an hour of measuring.

    :raises ExtraMissingError: one of these is not installed; names all that are not.
    """
    lacking = [each for each in extras if not _has(each)]
    if lacking:
        raise ExtraMissingError(f"this needs what is not installed: {missing_extra(*lacking)}")


@contextmanager
def explained() -> Iterator[None]:
    """Whatever is imported in it.

    :raises ExtraMissingError: a module is missing that an extra brings.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise with_wording(error) from error


def with_wording(error: Exception) -> Exception:
    """An error that says which extra to add, in place of one about a module that an extra brings;
    any other as it is."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return error
    module = error.name.partition(".")[0]
    for extra, modules in MODULES.items():
        if module in modules:
            return ExtraMissingError(
                f"this needs {module}, which is missing: {missing_extra(extra)}"
            )
    return error


def missing_extra(*extras: Extra) -> str:
    """Build the command that installs extras.

    >>> missing_extra(Extra.BENCH, Extra.REPORT)
    "pip install 'hotset[bench,report]'"
    """
    named = f"'hotset[{','.join(extras)}]'"
    if not is_packaged():
        return f"pip install {named}"
    if _IN_ANOTHER_PACKAGE.issuperset(extras):
        return "apt-get install hotset-bench (the package of the same version)"
    return f"no package of hotset has it, its wheel does: uv tool install {named}"


def is_packaged() -> bool:
    """True if this hotset was installed as a Linux package."""
    return sys.prefix == PACKAGED


def is_offered(extra: Extra) -> bool:
    """True if this hotset has it, or can be given it the way it was installed."""
    return not is_packaged() or extra not in (Extra.CLUSTER, Extra.SEARCH) or _has(extra)


def _has(extra: Extra) -> bool:
    return all(find_spec(module) is not None for module in MODULES[extra])

"""Every error that hotset foresees is a `HotsetError`, whichever folder it is from."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import hotset
from hotset.core import errors as wording
from hotset.core.errors import FAILED, INTERRUPTED, LACKS, MISSED, USAGE, HotsetError, Remedy

# Those that never reach a user: caught where they are raised, or a fault of hotset's own.
INTERNAL = {
    "VerbFailed",
    "_Enough",
    "WorkerDied",
    "NoFactor",
    "_Failed",
    "UserFailed",
}
STATUS = {
    USAGE: {404, 409, 422},
    LACKS: {403, 409},
    FAILED: {424, 429},
    MISSED: {424},
    INTERRUPTED: {424},
}


def errors() -> Iterator[type[Exception]]:
    for module in pkgutil.walk_packages(hotset.__path__, "hotset."):
        if module.name.rpartition(".")[2] == "__main__":
            continue
        found = importlib.import_module(module.name)
        for kind in vars(found).values():
            own = isinstance(kind, type) and issubclass(kind, Exception)
            if own and kind.__module__ == module.name and kind.__name__ not in INTERNAL:
                yield kind


def test_an_error_has_its_code_and_status() -> None:
    for kind in errors():
        assert issubclass(kind, HotsetError), kind
        assert kind.http_status in STATUS[kind.exit_code], kind


def test_each_caller_words_it_in_its_own_language() -> None:
    error = HotsetError(
        "33 blocks are dirty",
        Remedy("write them back first", parameters={"flush": True}),
        Remedy("see them", "tier status", {"disk": "shop"}),
        field="cache",
    )
    assert wording.of_command_line(error) == (
        "--cache: 33 blocks are dirty; to write them back first: add --flush; to see them:"
        " `hotset tier status shop`"
    )
    assert wording.of_api(error) == (
        "cache: 33 blocks are dirty; to write them back first: add flush=true; to see them:"
        " tier status with disk=shop"
    )

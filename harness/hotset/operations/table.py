"""Operations by the first words of their commands, and the modules that declare them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

from hotset.core.errors import NotFoundError
from hotset.core.operation import Operation, declared

MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "demo": ("experiment.commands.experiment",),
        "experiment": ("experiment.commands.experiment",),
        "runs": ("experiment.commands.runs",),
        "tpcc": ("bench.commands.tpcc",),
        "sql": ("bench.commands.sql",),
        "heat": ("monitoring.commands.heat",),
        "report": (
            "experiment.commands.report",
            "monitoring.commands.hit_ratio",
            "monitoring.commands.history",
        ),
        "tier": ("disk.commands", "monitoring.commands.tier_views", "health.commands"),
        "warmup": (
            "warmup.commands.warmup",
            "warmup.commands.pins",
            "warmup.commands.targets",
            "warmup.commands.schedule",
        ),
        "lab": ("operations.lab",),
        "disk": tuple(
            f"bench.commands.{module}" for module in ("disk", "fidelity", "reread", "arrays")
        ),
        "tpch": ("bench.commands.tpch",),
        "database": ("bench.commands.database",),
        "whatif": tuple(
            f"whatif.commands.{module}"
            for module in ("models", "traces", "caches", "advice", "check")
        ),
        "programs": ("lab.commands.programs",),
        "doctor": ("lab.commands.doctor",),
        "audit": ("operations.audit_view",),
    }
)
"""The modules that declare the operations of a first word: only what is called is loaded."""


def find(name: str) -> Operation:
    """An operation by its name; loads only those of its first word.

    :raises NotFoundError: there is none of that name.
    """
    for operation in group(name.partition(" ")[0]):
        if name == operation.name:
            return operation
    raise NotFoundError(f"there is no operation {name!r}")


def group(word: str) -> list[Operation]:
    """The operations with this first word, module by module as :data:`MODULES` has them, each in
    the order in which it declares them: whatever was imported first."""
    _load(word)
    modules = [f"hotset.{module}" for module in MODULES.get(word, ())]
    operations = (operation for operation in declared.values() if operation.words[0] == word)
    return sorted(operations, key=lambda operation: modules.index(operation.module))


def every() -> Iterator[Operation]:
    """All operations, by name."""
    for word in MODULES:
        _load(word)
    yield from (declared[name] for name in sorted(declared))


def _load(word: str) -> None:
    for module in MODULES.get(word, ()):
        import_module(f"hotset.{module}")

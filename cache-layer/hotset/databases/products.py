"""The database products that there are. Each is loaded when one of its databases is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hotset.core.sql import EngineName

from .product import SqlDatabase


def _postgres() -> type[SqlDatabase]:
    from .postgres.product import PostgresDatabase

    return PostgresDatabase


def _sqlserver() -> type[SqlDatabase]:
    from .sqlserver.product import SqlServerDatabase

    return SqlServerDatabase


@dataclass(frozen=True, slots=True)
class Product:
    """A product: its name on the command line, and its databases."""

    name: EngineName
    load: Callable[[], type[SqlDatabase]]


PRODUCTS = [
    Product("postgres", _postgres),
    Product("sqlserver", _sqlserver),
]
"""One a line."""


def product_of_name(name: EngineName) -> type[SqlDatabase]:
    """Databases of the product of that name."""
    return next(product for product in PRODUCTS if product.name == name).load()

"""Data loaded once into the server for the tests marked `database`."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.harness.engines.postgres import PostgresDatabase, PostgresSession
from hotset.tpcc.load import LoadResult, load
from tests.postgres_cluster import PASSWORD, Cluster, cluster

__all__ = ["PASSWORD", "Cluster", "cluster"]

WAREHOUSES = 2


@pytest.fixture(scope="session")
def loaded(cluster: Cluster) -> tuple[PostgresDatabase, LoadResult]:
    """The database `postgres` with two warehouses, and what loading said."""
    database = cluster.database()
    return database, load(database, WAREHOUSES, seed=7)


@pytest.fixture
def database(loaded: tuple[PostgresDatabase, LoadResult]) -> PostgresDatabase:
    """A database with two warehouses; a test leaves it consistent."""
    return loaded[0]


@pytest.fixture
def session(database: PostgresDatabase) -> Iterator[PostgresSession]:
    """A connection to that database."""
    with closing(database.session()) as opened:
        yield opened


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[PostgresDatabase]:
    """A database without tables."""
    with closing(cluster.database().session()) as owner:
        owner.script("CREATE DATABASE empty")
        yield replace(cluster.database(), dbname="empty")
        owner.script("DROP DATABASE empty WITH (FORCE)")

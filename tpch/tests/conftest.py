"""TPC-H at scale 0.01, loaded once into a database of its own."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hotset.databases.postgres.tpch import PostgresTpch, PostgresTpchSession
from hotset.tpch.load import LoadResult, load
from tests.postgres_cluster import Cluster

SCALE = 0.01


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the generated text of all tests lies."""
    return tmp_path_factory.mktemp("tpch-data")


@pytest.fixture(scope="session")
def loaded(cluster: Cluster, folder: Path) -> Iterator[tuple[PostgresTpch, LoadResult]]:
    """A database with TPC-H, loaded by two processes, and what loading said."""
    with cluster.fresh("loaded_tpch") as where:
        database = PostgresTpch(where)
        yield database, load(database, SCALE, folder, processes=2)


@pytest.fixture
def database(loaded: tuple[PostgresTpch, LoadResult]) -> PostgresTpch:
    """A database with TPC-H; a test leaves it whole."""
    return loaded[0]


@pytest.fixture
def session(database: PostgresTpch) -> Iterator[PostgresTpchSession]:
    """A connection to that database."""
    with closing(database.session()) as opened:
        yield opened


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[PostgresTpch]:
    """A database without tables."""
    with cluster.fresh("empty_tpch") as where:
        yield PostgresTpch(where)

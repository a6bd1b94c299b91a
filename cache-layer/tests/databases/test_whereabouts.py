"""Whose files they are, told by what lies there: with a real server, and copies of what it has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import cast

import pytest

from hotset.core.machines.local import Local
from hotset.databases.base import Connection, Unavailable
from hotset.databases.postgres import whereabouts
from hotset.databases.postgres.client import PostgresSession
from tests.fake_machine import FakeMachine
from tests.postgres_cluster import Cluster

pytestmark = pytest.mark.database


@pytest.fixture
def session(cluster: Cluster) -> Iterator[PostgresSession]:
    with closing(cluster.database().session()) as session:
        yield cast("PostgresSession", session)


@pytest.fixture
def data(session: PostgresSession) -> Path:
    return Path(str(session.query("SELECT current_setting('data_directory')")[0][0]))


class Elsewhere:
    """The same server, that says that its files are elsewhere: as one in a container does."""

    def __init__(self, session: PostgresSession, named: Path) -> None:
        self._session, self._named = session, named

    def query(self, sql: str) -> list[tuple[object, ...]]:
        if "data_directory" in sql:
            return [(str(self._named),)]
        return list(self._session.query(sql))


def find(connection: object, below: Path | None = None) -> whereabouts.Whereabouts | Unavailable:
    where = None if below is None else PurePosixPath(below)
    return whereabouts.find(Local(), cast("Connection", connection), where)


def copied(data: Path, into: Path, *, start: int = 0, identifier: int = 0) -> Path:
    """What tells a data directory, as another server's: of a later start, or of another cluster."""
    (into / "global").mkdir(parents=True)
    control = (data / "global/pg_control").read_bytes()
    first = int.from_bytes(control[:8], "little") + identifier
    (into / "global/pg_control").write_bytes(first.to_bytes(8, "little") + control[8:])
    lines = (data / "postmaster.pid").read_text().splitlines()
    lines[2] = str(int(lines[2]) + start)
    (into / "postmaster.pid").write_text("\n".join(lines) + "\n")
    return into


def test_a_server_on_the_machine_is_found_where_it_says(
    session: PostgresSession, data: Path
) -> None:
    found = find(session)
    assert isinstance(found, whereabouts.Whereabouts)
    assert found.data == PurePosixPath(data.resolve())


@pytest.mark.parametrize("other", [{"start": 600}, {"identifier": 1}])
def test_another_cluster_with_the_same_paths_is_not_taken_for_it(
    session: PostgresSession, data: Path, tmp_path: Path, other: dict[str, int]
) -> None:
    """A container's path that is there outside too; two servers of one identifier: clones."""
    inside = Elsewhere(session, copied(data, tmp_path / "pg", **other))
    found = find(inside, tmp_path)
    assert isinstance(found, Unavailable)
    assert "another server's" in found.reason


def test_a_server_whose_files_have_another_path_on_the_disk_is_found_there(
    session: PostgresSession, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk").symlink_to(data.parent)
    inside = Elsewhere(session, Path("/var/lib/postgresql/data"))
    copied(data, tmp_path / "other", start=600)
    found = find(inside, (tmp_path / "disk").resolve())
    assert isinstance(found, whereabouts.Whereabouts)
    assert found.data == PurePosixPath(data.resolve())


def test_what_cannot_be_told_from_a_copy_is_not_known(
    session: PostgresSession, data: Path, tmp_path: Path
) -> None:
    copied(data, tmp_path / "copy")
    found = find(session, tmp_path)
    assert isinstance(found, Unavailable)
    assert "cannot be told from a copy" in found.reason
    shutil.rmtree(tmp_path / "copy")
    assert isinstance(find(session, tmp_path), whereabouts.Whereabouts)


def test_a_server_of_another_machine_has_no_files_here(session: PostgresSession) -> None:
    elsewhere = FakeMachine({"sh -c": ""})
    found = whereabouts.find(elsewhere, cast("Connection", session), None)
    assert isinstance(found, Unavailable)
    assert "not found on" in found.reason

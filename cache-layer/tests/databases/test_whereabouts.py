"""Whose files they are, told by what lies there: with a real server, and copies of what it has."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import cast

import pytest

from hotset.core.machines.local import Local, free_port
from hotset.core.sql import Session
from hotset.databases import file_labels
from hotset.databases.base import Unavailable
from hotset.databases.file_labels import ANOTHER
from hotset.databases.postgres import whereabouts
from hotset.databases.postgres.admin import PostgresEngine
from hotset.databases.postgres.client import PostgresSession
from tests.fake_machine import FakeMachine
from tests.postgres_cluster import PASSWORD, Cluster

pytestmark = pytest.mark.database


@pytest.fixture
def session(cluster: Cluster) -> Iterator[PostgresSession]:
    with closing(cluster.database().session()) as session:
        yield cast("PostgresSession", session)


@pytest.fixture
def data(session: PostgresSession) -> Path:
    return Path(str(session.query("SELECT current_setting('data_directory')")[0][0]))


def find(connection: object, below: Path | None = None) -> whereabouts.Whereabouts | Unavailable:
    where = None if below is None else PurePosixPath(below)
    return whereabouts.find(Local(), cast("Session", connection), where)


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


@pytest.mark.parametrize("other", [{}, {"start": 600}, {"identifier": 1}])
def test_another_cluster_is_not_taken_for_it(
    session: PostgresSession, data: Path, tmp_path: Path, other: dict[str, int]
) -> None:
    """A copy made while the server ran, with its lock file; two servers of one identifier: clones;
    another cluster."""
    copied(data, tmp_path / "copy", **other)
    found = find(session, tmp_path)
    assert isinstance(found, whereabouts.Whereabouts)
    assert found.data == PurePosixPath(data.resolve())


def test_of_a_server_whose_processes_are_not_seen_a_copy_is_not_taken_for_its_files(
    session: PostgresSession, data: Path, tmp_path: Path
) -> None:
    """It runs elsewhere, and its files were copied here with its lock file: by path as well."""
    copied(data, tmp_path / "copy")
    found = whereabouts.find(Local(), cast("Session", Elsewhere(session)), PurePosixPath(tmp_path))
    assert isinstance(found, Unavailable)
    assert "another server's" in found.unavailable


class Elsewhere:
    """The same server, on another machine: none of the processes here is one of its."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    def query(self, sql: str) -> list[tuple[object, ...]]:
        return self._session.query(sql.replace("pg_backend_pid()", "-1"))


def test_a_running_clone_has_files_of_its_own(
    cluster: Cluster, session: PostgresSession, data: Path
) -> None:
    """pg_basebackup: the same identifier, numbers and names, on one disk."""
    session.script("CREATE DATABASE cloned")
    with cloned_cluster(cluster) as clone, closing(clone.database().session()) as its:
        for one, folder in ((session, data), (its, clone.root / "data")):
            found = find(cast("PostgresSession", one), Path(tempfile.gettempdir()))
            assert isinstance(found, whereabouts.Whereabouts)
            assert found.data == PurePosixPath(folder.resolve())
        label = PostgresEngine(cast("Session", its)).labels("database", Local(), None)
        assert not isinstance(label, Unavailable)
        ((oid,),) = its.query("SELECT oid FROM pg_database WHERE datname = 'cloned'")
        own, others = (f"{folder}/base/{oid}/1259" for folder in (clone.root / "data", data))
        assert (label(own), label(others)) == ("cloned", ANOTHER)
    session.script("DROP DATABASE cloned")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has name spaces")
def test_a_clone_in_a_container_with_the_same_paths_has_files_of_its_own(
    cluster: Cluster, session: PostgresSession, data: Path, spaced: tuple[Path, str]
) -> None:
    """In it, the first server's data directory and its tablespace are names of the clone's."""
    space, name = spaced
    with (
        cloned_cluster(cluster, data, space) as clone,
        closing(clone.database().session()) as its,
    ):
        ((named,),) = its.query("SELECT current_setting('data_directory')")
        assert named == str(data)
        for one, root in ((session, cluster.root), (its, clone.root)):
            for below in (None, Path(tempfile.gettempdir())):
                found = find(cast("PostgresSession", one), below)
                assert isinstance(found, whereabouts.Whereabouts)
                assert Path(found.data).samefile(root / "data")
                file = Path(found.path(name))
                assert file.is_file()
                assert file.resolve().is_relative_to(root / "space") or not below


@pytest.fixture
def spaced(cluster: Cluster, session: PostgresSession) -> Iterator[tuple[Path, str]]:
    """The folder of a tablespace, and the server's name of the file of a table in it."""
    space = cluster.root / "space"
    space.mkdir()
    cluster.hand_over(space)
    session.script(f"CREATE TABLESPACE shared LOCATION '{space}'")
    try:
        session.script("CREATE TABLE spaced TABLESPACE shared AS SELECT 1 AS id")
        ((name,),) = session.query("SELECT pg_relation_filepath('spaced')")
        yield space, str(name)
    finally:
        session.script("DROP TABLE IF EXISTS spaced")
        session.script("DROP TABLESPACE shared")
        shutil.rmtree(space)


@contextmanager
def cloned_cluster(cluster: Cluster, *hidden: Path) -> Iterator[Cluster]:
    """A running clone by pg_basebackup; ``hidden``: folders of the first server's, by whose names
    the clone has its own."""
    root = Path(tempfile.mkdtemp(prefix="hotset-pg-"))
    cluster.hand_over(root)
    clone = Cluster(cluster.binaries, root, free_port())
    source = [f"--dbname=host={cluster.root} port={cluster.port} user=tester"]
    mapped = [f"--tablespace-mapping={one}={root / one.name}" for one in hidden[1:]]
    argv = [str(cluster.binaries / "pg_basebackup"), "-D", str(root / "data"), *source, *mapped]
    if hidden:
        mounts = "; ".join(f"mount --bind {root / one.name} {one}" for one in hidden)
        names = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
        clone.within = (*names, "sh", "-ec", f'{mounts}; exec "$@"', "container")
        clone.data = hidden[0]
    try:
        clone.run_as_server([*argv, "--checkpoint=fast"], PGPASSWORD=PASSWORD)
        for one in hidden[1:]:
            # As it was made inside: by the first server's name.
            (link,) = (root / "data" / "pg_tblspc").iterdir()
            link.unlink()
            link.symlink_to(one)
        clone.start()
        try:
            yield clone
        finally:
            clone.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def test_a_server_whose_files_have_another_path_on_the_disk_is_found_there(
    session: PostgresSession, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk").symlink_to(data.parent)
    copied(data, tmp_path / "other", start=600)
    found = find(session, (tmp_path / "disk").resolve())
    assert isinstance(found, whereabouts.Whereabouts)
    assert found.data == PurePosixPath(data.resolve())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_disk_that_is_mounted_twice_has_its_files_where_they_are_asked_for(
    cluster: Cluster, session: PostgresSession, data: Path, tmp_path: Path
) -> None:
    """The second path passed for a copy of the first."""
    with mounted(cluster.root, tmp_path / "twice") as twice:
        for below in (cluster.root, twice):
            found = find(session, below)
            assert isinstance(found, whereabouts.Whereabouts)
            assert found.data == PurePosixPath(below.resolve()) / data.name


def test_in_a_shared_tablespace_the_folder_of_another_version_is_another_servers(
    session: PostgresSession, spaced: tuple[Path, str]
) -> None:
    """As pg_upgrade leaves it: with the same numbers."""
    space, name = spaced
    label = PostgresEngine(cast("Session", session)).labels("table", Local(), None)
    assert not isinstance(label, Unavailable)
    _, _, version, *rest = Path(name).parts
    own = space.joinpath(version, *rest)
    assert own.is_file()
    assert label(str(own)) == "public.spaced"
    assert label(str(space.joinpath("PG_14_202107181", *rest))) == ANOTHER
    found = find(session)
    assert isinstance(found, whereabouts.Whereabouts)
    assert Path(found.path(name)).samefile(own)


@contextmanager
def mounted(source: Path, at: Path) -> Iterator[Path]:
    at.mkdir()
    subprocess.run(["mount", "--bind", str(source), str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


def test_a_cluster_inside_a_servers_folder_is_another_servers(data: Path) -> None:
    """As what a container's upgrade leaves in its data directory."""
    place = whereabouts.Whereabouts(PurePosixPath(data), {})
    label = file_labels.postgres(place.name, {5: "erp"}, None)
    assert label(f"{data}/base/5/16384") == "erp"
    assert label(f"{data}/old/base/5/16384") == ANOTHER


def test_a_server_of_another_machine_has_no_files_here(session: PostgresSession) -> None:
    elsewhere = FakeMachine({"sh -c": ""})
    found = whereabouts.find(elsewhere, cast("Session", session), None)
    assert isinstance(found, Unavailable)
    assert "not found on" in found.unavailable

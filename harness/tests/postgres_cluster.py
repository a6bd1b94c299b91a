"""A private PostgreSQL server for the tests marked `database`, and TPC-C loaded into it once.

The tests use the harness's client adapters: those that runs use. A pytest plugin (pyproject.toml
names it), so that all folders' tests share one server.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotset.databases.postgres.client import PostgresDatabase, PostgresSession
from hotset.tpcc.data.load import LoadResult, load

PASSWORD = "never-to-be-seen"  # noqa: S105 - of a server that lives for a minute


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL data directory with a server on loopback; fast and unsafe (fsync off)."""

    binaries: Path
    root: Path
    port: int

    def database(self, name: str = "postgres") -> PostgresDatabase:
        return PostgresDatabase("127.0.0.1", self.port, "tester", PASSWORD, name)

    @contextmanager
    def fresh(self, name: str) -> Iterator[PostgresDatabase]:
        """A database without tables; it is dropped at the end, whoever is still in it."""
        with closing(self.database().session()) as owner:
            owner.script(f"CREATE DATABASE {name}")
        try:
            yield self.database(name)
        finally:
            # A session of its own: a test may have started the server anew.
            with closing(self.database().session()) as owner:
                owner.script(f"DROP DATABASE {name} WITH (FORCE)")

    def initialise(self) -> None:
        password_file = self.root / "password"
        password_file.write_text(PASSWORD)
        for path in (self.root, password_file):
            self.hand_over(path)
        self._as_user(
            "initdb",
            "-D",
            str(self.root / "data"),
            "-U",
            "tester",
            "-N",
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(password_file),
        )

    def hand_over(self, path: Path) -> None:
        """Make it the server's account's."""
        if os.geteuid() == 0:
            shutil.chown(path, _other_user())

    def start(self) -> None:
        settings = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 -c fsync=off"
            f" -c unix_socket_directories={self.root} -c shared_buffers=256MB"
            " -c max_wal_size=4GB -c autovacuum=off -c deadlock_timeout=50ms"
        )
        deadline = time.monotonic() + 20
        while True:
            try:
                return self._as_user(
                    "pg_ctl",
                    "-D",
                    str(self.root / "data"),
                    "-w",
                    "-l",
                    str(self.root / "log"),
                    "-o",
                    settings,
                    "start",
                )
            except AssertionError:
                # After a kill, sessions of the old server may still be on their way out.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def kill(self) -> None:
        """SIGKILL the server with all its processes: a session that is kept busy may not notice for
        long that its postmaster is gone."""
        first_line = (self.root / "data" / "postmaster.pid").read_text().splitlines()[0]
        parent = int(first_line)
        for pid in (parent, *_children(parent)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        self._as_user("pg_ctl", "-D", str(self.root / "data"), "-m", "immediate", "stop")

    def _as_user(self, program: str, *arguments: str) -> None:
        prefix = ["runuser", "-u", _other_user(), "--"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*prefix, str(self.binaries / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self.root,
            check=False,
        )
        assert done.returncode == 0, f"{program}: {done.stderr.decode()}"


def _children(parent: int) -> list[int]:
    """Of a process: field 4 of /proc/PID/stat, behind the name in brackets, is the parent's."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


def _other_user() -> str:
    """PostgreSQL refuses to run as root."""
    passwd = Path("/etc/passwd").read_text()
    return "postgres" if "\npostgres:" in passwd else "nobody"


def _binaries() -> Path:
    """The newest installed server's programs."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    found = installed[-1] if installed else shutil.which("initdb")
    if found is None:
        pytest.fail("no PostgreSQL server is installed: apt install postgresql")
    return Path(found).parent


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The server, for all tests; whoever kills it starts it again."""
    root = Path(tempfile.mkdtemp(prefix="hotset-pg-"))
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Cluster(_binaries(), root, port)
    try:
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)


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
    with cluster.fresh("empty") as database:
        yield database

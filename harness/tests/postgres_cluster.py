"""A private PostgreSQL server for the tests marked `database`, and TPC-C loaded into it once.

The tests use the harness's client adapters: those that runs use. A pytest plugin (pyproject.toml
names it), so that all folders' tests share one server.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines.local import free_port
from hotset.databases.postgres.client import PostgresSession
from hotset.databases.postgres.product import PostgresDatabase
from hotset.tpcc.data.load import LoadResult, load

PASSWORD = "never-to-be-seen"  # noqa: S105 - of a server that lives for a minute
_START_LIMIT_S = 120.0


@dataclass
class Cluster:
    """A PostgreSQL data directory with a server on loopback; fast and unsafe (fsync off).

    The server is a child of the tests, and ends with them, whatever ends them.

    :ivar data: as the server has it.
    :ivar within: what it is called by, such as unshare.
    """

    binaries: Path
    root: Path
    port: int
    data: Path = field(default=Path("data"))
    within: tuple[str, ...] = ()
    _server: subprocess.Popen[bytes] | None = field(default=None, init=False)

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
            # A session of its own: a test may have started the server again.
            with closing(self.database().session()) as owner:
                owner.script(f"DROP DATABASE {name} WITH (FORCE)")

    def initialise(self) -> None:
        password_file = self.root / "password"
        password_file.write_text(PASSWORD)
        for path in (self.root, password_file):
            self.hand_over(path)
        self.run_as_server(
            [
                *(str(self.binaries / "initdb"), "-D", str(self.root / "data"), "-U", "tester"),
                *("-N", "-A", "scram-sha-256", "--pwfile", str(password_file)),
            ]
        )

    def run_as_server(self, argv: list[str], **environment: str) -> None:
        """By the server's account."""
        done = subprocess.run(
            [*_as_other_user(), *argv],
            capture_output=True,
            cwd=self.root,
            env={**os.environ, **environment},
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()

    def hand_over(self, path: Path) -> None:
        """Make it the server's account's."""
        if os.geteuid() == 0:
            shutil.chown(path, _other_user())

    def start(self) -> None:
        """From the tests' main thread: the server ends with the thread that began it."""
        settings = (
            *(f"port={self.port}", "listen_addresses=127.0.0.1", "fsync=off"),
            *(f"unix_socket_directories={self.root}", "shared_buffers=256MB"),
            *("max_wal_size=4GB", "autovacuum=off", "deadlock_timeout=50ms"),
        )
        argv = [
            *self.within,
            *_as_other_user("--pdeathsig=QUIT"),
            *(str(self.binaries / "postgres"), "-D", str(self.root / self.data)),
            *(word for one in settings for word in ("-c", one)),
        ]
        log, deadline = self.root / "log", time.monotonic() + _START_LIMIT_S
        while time.monotonic() < deadline:
            with log.open("ab") as file:
                server = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=self.root
                )
            self._server = server
            if wait_until(self._answers, _START_LIMIT_S, 0.05, ended=server.poll):
                return
            # After a kill, sessions of the old server may still be on their way out.
            time.sleep(0.2)
        raise AssertionError(log.read_text()[-2000:])

    def _answers(self) -> bool:
        argv = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(argv, check=False).returncode == 0

    def kill(self) -> None:
        """SIGKILL the server with all its processes: a session that is kept busy may not notice for
        long that its postmaster is gone."""
        assert self._server is not None
        parent = self._server.pid
        for pid in (parent, *children(parent)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._server.wait()

    def stop(self) -> None:
        """At once, as it is stopped where the tests end without a word."""
        assert self._server is not None
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait()


def children(parent: int) -> list[int]:
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


def _as_other_user(*more: str) -> list[str]:
    """What a program is called with that is to run as that user; ``more`` are setpriv's."""
    if os.geteuid() != 0:
        return ["setpriv", *more, "--"] if more else []
    user = pwd.getpwnam(_other_user())
    ids = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups")
    return ["setpriv", *ids, *more, "--"]


def _binaries() -> Path:
    """The newest installed server's programs."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    found = installed[-1] if installed else shutil.which("initdb")
    if found is None:
        pytest.fail("no PostgreSQL server is installed: apt install postgresql")
    return Path(found).parent


@contextmanager
def own_cluster(configuration: str = "") -> Iterator[Cluster]:
    """A server of one's own; nothing of it is left at the end.

    :param configuration: lines of postgresql.conf.
    """
    root = Path(tempfile.mkdtemp(prefix="hotset-pg-"))
    try:
        server = Cluster(_binaries(), root, free_port())
        server.initialise()
        with (root / "data" / "postgresql.auto.conf").open("a") as file:
            file.write(configuration)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The server, for all tests; whoever kills it starts it again."""
    with own_cluster() as server:
        yield server


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

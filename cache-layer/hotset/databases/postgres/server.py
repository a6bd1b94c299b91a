"""A PostgreSQL server on a machine: where its files lie, how it starts and stops.

Data lies on the accelerated disk, the log (WAL) and temporary tablespace on the volume. With
direct I/O no page cache of the operating system hides the tier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.core.machines.base import Machine, PrerequisiteMissingError, put_text
from hotset.core.sql import LoadFailed
from hotset.core.units import Bytes

from .product import PostgresDatabase

PORT = 5432
USER = "postgres"
_BIN = PurePosixPath("/usr/lib/postgresql")
_SOCKETS = "/run/postgresql"
_TEMP_TABLESPACE = "hotset_temp"
_MIB = 1024**2
_SMALLEST_LOG = 32 * _MIB
"""Two of its files."""
_BESIDE_THE_LOG = 64 * _MIB
_LOAD_LIMIT_S = 24 * 3600.0
OLDEST_VERSION = 16
"""The first with direct I/O."""


@dataclass(frozen=True, slots=True)
class Place:
    """Mount points on the machine: ``data`` (accelerated) and ``volume`` (log, temporary space)."""

    data: PurePosixPath
    volume: PurePosixPath

    @property
    def cluster(self) -> PurePosixPath:
        return self.data / "cluster"

    @property
    def log(self) -> PurePosixPath:
        return self.volume / "wal"

    @property
    def temp(self) -> PurePosixPath:
        return self.volume / "temp"


def log_size(volume: Bytes) -> Bytes:
    """``max_wal_size`` for a flash volume. The server holds it only about: under load its log may
    come to twice that, beside the file system's own and temporary space."""
    return Bytes(max(_SMALLEST_LOG, (volume - _BESIDE_THE_LOG) // 2))


def run_settings(buffers: Bytes, users: int, log_size: Bytes) -> dict[str, str]:
    """Settings of a measured run: everything durable, direct I/O, no background surprises.

    The planner is told what holds for slow storage, in every arm: random reads at their default
    cost and no cache beside the buffers (direct I/O has none). Flash's 1.1, or the default of 4 GB
    of cache, gives TPC-H index look-ups that take slow storage minutes; TPC-C's plans hang on
    neither.

    Checkpoints and autovacuum stay out of the short window, in every arm alike; the log is
    pre-sized (scenario ``zdxl-2014``), so that no arm pays for making new log files.
    """
    megabytes = f"{max(16, buffers // _MIB)}MB"
    return {
        "shared_buffers": megabytes,
        "effective_cache_size": megabytes,
        "debug_io_direct": "data,wal",
        "max_connections": str(users + 10),
        "autovacuum": "off",
        "checkpoint_timeout": "1h",
        "max_wal_size": f"{log_size // _MIB}MB",
        # Never more than the other: so many files are kept for the next ones, full or not.
        "min_wal_size": f"{min(80, log_size // _MIB)}MB",
        "wal_buffers": "4MB",
        "temp_tablespaces": _TEMP_TABLESPACE,
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
    }


def load_settings(buffers: Bytes, connections: int, log_size: Bytes) -> dict[str, str]:
    """Settings of the load: fast; a crash only means loading again.

    :param log_size: the log files it makes stay in the image, and each arm's volume takes them.
    """
    return {
        "shared_buffers": f"{buffers // _MIB}MB",
        "maintenance_work_mem": "128MB",
        "max_connections": str(connections),
        "fsync": "off",
        "full_page_writes": "off",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "max_wal_size": f"{log_size // _MIB}MB",
        "min_wal_size": "32MB",
        "autovacuum": "off",
    }


class PostgresServer:
    """One PostgreSQL cluster on a machine."""

    def __init__(self, machine: Machine, place: Place, password: str) -> None:
        self._machine = machine
        self._place = place
        self._password = password
        self._bin = _newest(machine)
        self._port = machine.port(PORT)

    def create(self) -> None:
        """Make the cluster and its folders; the file systems must be mounted."""
        for folder in (self._place.cluster, self._place.log, self._place.temp):
            self._machine.run(["mkdir", "-p", "-m", "700", str(folder)])
            self._machine.run(["chown", f"{USER}:{USER}", str(folder)])
        self._run(
            "initdb",
            "--pgdata",
            str(self._place.cluster),
            "--waldir",
            str(self._place.log),
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--auth-local=peer",
            "--auth-host=scram-sha-256",
            "--no-sync",
        )

    def make_temporary_space(self) -> None:
        """Make the temporary tablespace on the running server."""
        self._sql(f"CREATE TABLESPACE {_TEMP_TABLESPACE} LOCATION '{self._place.temp}';")

    def create_database(self, name: str) -> None:
        """Make an empty database on the running server."""
        self._sql(f"CREATE DATABASE {name};")

    def load(self, name: str, files: Sequence[Path], say: Callable[[str], None]) -> None:
        """Run files of SQL in a database of the running server, as psql does.

        :param say: called with each file's name as it begins.
        :raises LoadFailed: a statement failed; names file and line.
        """
        for file in files:
            say(file.name)
            with self._copied(file) as copy:
                argv = [*self._psql(name), "-f", str(copy)]
                self._load(argv, {str(copy): str(file)})

    def restore(self, name: str, archive: Path) -> None:
        """Restore an archive of pg_dump, a file or a folder, into a database of the running server.

        Owners and privileges are left out: the roles they name are another server's.

        :raises LoadFailed: pg_restore failed; its own words.
        """
        with self._copied(archive) as copy:
            where = ["-h", _SOCKETS, "-p", str(self._port), "--dbname", name]
            how = ["--no-owner", "--no-privileges", "--exit-on-error"]
            argv = [str(self._bin / "pg_restore"), *where, *how, str(copy)]
            self._load(argv, {str(copy): str(archive)})

    def vacuum(self, name: str) -> None:
        """Clean up after a load, and have the planner's statistics made."""
        argv = [*self._psql(name), "-c", "VACUUM (ANALYZE)"]
        self._machine.run(argv, user=USER, timeout_s=_LOAD_LIMIT_S)

    @contextmanager
    def _copied(self, source: Path) -> Iterator[PurePosixPath]:
        """A file or a folder of this computer's on the machine's data disk, for a while."""
        folder = self._place.data / "load"
        files = sorted(file for file in source.iterdir()) if source.is_dir() else [source]
        copy = folder / source.name
        self._machine.run(["mkdir", "-p", str(copy if source.is_dir() else folder)])
        try:
            for file in files:
                self._machine.put(file, copy / file.name if source.is_dir() else copy)
            yield copy
        finally:
            self._machine.run(["rm", "-rf", str(folder)])

    def _load(self, argv: Sequence[str], named: Mapping[str, str]) -> None:
        """:param named: what the user calls the files of the machine's."""
        done = self._machine.run(argv, user=USER, timeout_s=_LOAD_LIMIT_S, check=False)
        if done.rc == 0:
            return
        message = (done.stderr.strip() or f"it ended with code {done.rc}")[-1500:]
        for copy, original in named.items():
            message = message.replace(f"psql:{copy}", original).replace(copy, original)
        raise LoadFailed(message)

    def prewarm(self, name: str) -> None:
        """Read all tables and indexes of a database into the server's buffers."""
        self._sql("CREATE EXTENSION IF NOT EXISTS pg_prewarm;", name)
        self._sql(
            "SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relkind IN ('r', 'i', 'm')"
            " AND relpersistence = 'p' AND relfilenode <> 0;",
            name,
        )

    def start(self, settings: dict[str, str]) -> None:
        """Start and wait until it takes connections.

        :raises CommandError: it did not come up; its log's end is in the message.
        """
        self._write_settings(settings)
        log = self._place.cluster / "server.log"
        arguments = ("-D", str(self._place.cluster), "-l", str(log), "-w", "-t", "120", "start")
        try:
            self._run("pg_ctl", *arguments, timeout_s=180)
        except Exception as error:
            tail = self._machine.run(["cat", str(log)], check=False).stdout[-1500:]
            error.add_note(f"the server's log ends with:\n{tail}")
            raise
        # Over the server's own socket, so that the password is in no argv and no file.
        self._sql(f"ALTER ROLE {USER} PASSWORD '{self._password}';")

    def trim_log(self) -> None:
        """Leave only a few log files behind: an image for many arms carries no old log."""
        small = {"max_wal_size": "48MB", "min_wal_size": "32MB"}
        for key, value in small.items():
            self._sql(f"ALTER SYSTEM SET {key} = '{value}';")
        self._run("pg_ctl", "-D", str(self._place.cluster), "reload")
        self._sql("CHECKPOINT;")
        self._sql("ALTER SYSTEM RESET ALL;")

    def stop(self, mode: str = "fast", timeout_s: float = 600) -> None:
        """Stop the server; a shutdown checkpoint may take its time on slow storage."""
        self._run(
            "pg_ctl",
            "-D",
            str(self._place.cluster),
            "-m",
            mode,
            "-w",
            "-t",
            f"{timeout_s:.0f}",
            "stop",
            timeout_s=timeout_s + 30,
        )

    def database(self, name: str) -> PostgresDatabase:
        """How this computer reaches a database of the server."""
        host, port = self._machine.address(self._port)
        return PostgresDatabase(host, port, USER, self._password, name)

    def version(self) -> str:
        # pg_ctl (PostgreSQL) 17.6 (Debian 17.6-0+deb13u1)
        return self._run("pg_ctl", "--version").split()[-1].rstrip(")")

    def _write_settings(self, settings: dict[str, str]) -> None:
        common = {
            "listen_addresses": "*",
            "port": str(self._port),
            "unix_socket_directories": _SOCKETS,
            "password_encryption": "scram-sha-256",
            "log_min_messages": "warning",
        }
        lines = [f"{key} = '{value}'" for key, value in (common | settings).items()]
        access = ["local all all peer", "host all all all scram-sha-256"]
        self._machine.run(["mkdir", "-p", _SOCKETS])
        self._machine.run(["chown", f"{USER}:{USER}", _SOCKETS])
        for name, text in (("postgresql.conf", lines), ("pg_hba.conf", access)):
            # 0644: the folder itself is closed to everyone but the server.
            put_text(self._machine, "\n".join(text) + "\n", self._place.cluster / name)

    def _sql(self, text: str, database: str = "postgres") -> None:
        self._machine.run([*self._psql(database), "-f", "-"], user=USER, stdin=text)

    def _psql(self, database: str) -> list[str]:
        return [
            str(self._bin / "psql"),
            "-X",
            "-q",
            "-h",
            _SOCKETS,
            "-p",
            str(self._port),
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            database,
        ]

    def _run(self, program: str, *arguments: str, timeout_s: float = 120) -> str:
        argv = [str(self._bin / program), *arguments]
        return self._machine.run(argv, user=USER, timeout_s=timeout_s).stdout


def _newest(machine: Machine) -> PurePosixPath:
    names = machine.run(["ls", str(_BIN)], check=False).stdout.split()
    versions = sorted((int(name) for name in names if name.isdigit()), reverse=True)
    if not versions or versions[0] < OLDEST_VERSION:
        have = f"the newest there is {versions[0]}" if versions else "there is none"
        raise PrerequisiteMissingError(
            f"PostgreSQL {OLDEST_VERSION} or newer is needed on {machine.kind} for direct I/O;"
            f" {have}: apt-get install postgresql"
        )
    return _BIN / str(versions[0]) / "bin"

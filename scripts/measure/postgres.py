"""A private PostgreSQL, in memory where there is room, and TPC-C in it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hotset.core.machines.local import free_port
from hotset.databases.postgres.product import PostgresDatabase

from .programs import HOTSET, run

USER = "bench"
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder made by tempfile in it
ROOM_BYTES = 12 << 30
SETTINGS = {
    "shared_buffers": "2GB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "listen_addresses": "127.0.0.1",
}


@contextmanager
def server(autovacuum: bool = False) -> Iterator[int]:
    """A cluster on loopback, open to all users of this computer; yields its port."""
    with tempfile.TemporaryDirectory(prefix="hotset-bench-", dir=home()) as folder:
        as_other = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if as_other:
            shutil.chown(folder, "postgres")
        binaries, data, port = newest_server(), f"{folder}/data", free_port()
        run([*as_other, f"{binaries}/initdb", "-D", data, "-U", USER, "-A", "trust", "-N"])
        settings = SETTINGS | {"port": str(port), "unix_socket_directories": folder}
        settings["autovacuum"] = "on" if autovacuum else "off"
        options = " ".join(f"-c {key}={value}" for key, value in settings.items())
        control = [*as_other, f"{binaries}/pg_ctl", "-D", data, "-l", f"{folder}/log", "-w"]
        run([*control, "-o", options, "start"])
        try:
            yield port
        finally:
            run([*control, "-m", "immediate", "stop"])


@contextmanager
def tpcc(warehouses: int, autovacuum: bool = False) -> Iterator[tuple[PostgresDatabase, str]]:
    """A server with TPC-C; yields its database, and the DSN of that."""
    with server(autovacuum) as port:
        create(port, "bench")
        run([HOTSET, "tpcc", "build", "--quiet", f"--warehouses={warehouses}", *dsn(port, "bench")])
        yield database(port, "bench"), dsn(port, "bench")[1]


def database(port: int, name: str) -> PostgresDatabase:
    return PostgresDatabase("127.0.0.1", port, USER, "", name)


def create(port: int, name: str) -> None:
    """A database, empty."""
    with closing(database(port, "postgres").session()) as session:
        session.script(f"CREATE DATABASE {name}")


def dsn(port: int, name: str) -> list[str]:
    """The option that names a database to hotset."""
    return ["--dsn", f"host=127.0.0.1 port={port} user={USER} dbname={name}"]


def home() -> Path:
    """The folder of the server's files: in memory where there is room (databases, their copies and
    4 GB of log), as even without fsync the kernel writes files back to their disk, and a window
    then shares its time with what the one before it left to be written."""
    available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text("utf-8"))
    free = int(available[1]) << 10 if available else 0
    if MEMORY.is_dir() and min(free, shutil.disk_usage(MEMORY).free) >= ROOM_BYTES:
        return MEMORY
    return Path(tempfile.gettempdir())


def files_in() -> str:
    """Where the server's files lie, as the results say it."""
    return "files in memory" if home() == MEMORY else f"files on a disk, in {home()}"


def newest_server() -> Path:
    """The programs of the newest PostgreSQL server of this computer."""
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    newest = max(installed, key=lambda path: int(path.parent.name), default=None)
    if newest is None:
        sys.exit("bench: no PostgreSQL server is installed: apt install postgresql")
    return newest

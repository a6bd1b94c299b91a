"""Environment of a measurement: the database, its server's machine, and the tier below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine
from hotset.core.sql import DatabaseError
from hotset.databases.base import number
from hotset.databases.product import SqlDatabase
from hotset.reports.model import setup


@dataclass(frozen=True, slots=True)
class FoundDatabase:
    """
    :ivar server: host and port, or the folder of its socket; no user, no password.
    :ivar version: empty: not known; then the sizes are 0.
    """

    engine: str
    server: str
    name: str
    version: str = ""
    bytes: int = 0
    buffers_bytes: int = 0

    def record(self, **more: Any) -> setup.Database | None:  # noqa: ANN401 - fields of the record
        """Convert to the document's record; None where the server's version is unknown."""
        if not self.version:
            return None
        return setup.Database(
            engine=self.engine,
            version=self.version,
            bytes=self.bytes,
            buffers_bytes=self.buffers_bytes,
            **more,
        )


def find_database(database: SqlDatabase) -> FoundDatabase:
    """Ask the server; one that does not answer is no reason not to measure: that says it better."""
    try:
        server, (name, version, size, buffers) = database.identify()
        sizes = number(size or 0), number(buffers or 0)
    except (DatabaseError, ValueError):
        return FoundDatabase(database.engine, _where(database), database.dbname)
    return FoundDatabase(database.engine, server, str(name), str(version), *sizes)


def _where(database: SqlDatabase) -> str:
    return f"{database.host}:{database.port}" if database.port else database.host


def memory_bytes(machine: Machine) -> int:
    """MemTotal of /proc/meminfo, which is in KiB (proc(5))."""
    text = machine.run(["cat", "/proc/meminfo"]).stdout
    return int(text.split("MemTotal:")[1].split()[0]) * 1024


def machine_record(machine: Machine | None) -> setup.Machine | None:
    """The server's machine; None: it was not named, or does not tell."""
    if machine is None:
        return None
    try:
        return _machine_record(machine)
    except (HotsetError, ValueError, IndexError):
        return None


def _machine_record(machine: Machine) -> setup.Machine:
    processor = machine.run(["cat", "/proc/cpuinfo"]).stdout
    names = (line for line in processor.splitlines() if line.startswith("model name"))
    host = setup.Host(
        cpu=next(names, "").partition(":")[2].strip()
        or machine.run(["uname", "-m"]).stdout.strip(),
        cores=int(machine.run(["nproc"]).stdout),
        memory_bytes=memory_bytes(machine),
        kernel=machine.run(["uname", "-r"]).stdout.strip(),
    )
    return setup.Machine(
        kind="ssh" if machine.kind == "ssh" else "local" if machine.kind == "local" else "vm",
        cores=host.cores,
        memory_bytes=host.memory_bytes,
        kernel=host.kernel,
        host=host,
    )

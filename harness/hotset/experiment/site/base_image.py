"""The saved database image: loaded once, then the start of every arm of every repeat.

The file is a whole disk (file system, PostgreSQL cluster, TPC-C tables), cached under a key made
of everything that decides its content.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
from contextlib import closing
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from hotset.bench import tpcc as workload
from hotset.block import filesystem
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.machines.local import Local
from hotset.core.paths import cache_dir
from hotset.core.progress import Reporter
from hotset.core.sql import LoadFailed
from hotset.core.units import Bytes
from hotset.databases.postgres.server import PostgresServer, load_settings, log_size
from hotset.databases.postgres.tpch import PostgresTpch
from hotset.lab import image
from hotset.lab.lab import Lab
from hotset.reports.model.document import Workload
from hotset.tpcc import schema as tpcc_schema
from hotset.tpcc.data import consistency
from hotset.tpcc.data.load import load
from hotset.tpch import load as tpch_load
from hotset.tpch import schema as tpch_schema

from ..file.spec import Spec
from ..file.workload_tables import SqlTable, TpccTable, TpchTable
from .context import PLACE, SavedDatabase, SavedImage, mount, volume_on_data

_LOADERS = ("rows.py", "load.py", "nurand.py")
_TPCC_SQL = (
    *("marked_schema", "schema", "indexes", "statistics"),
    *(f"procedures/{name}" for name in sorted(tpcc_schema.PROCEDURES)),
)
_TPCH_SQL = ("marked_schema", "schema", "indexes", "foreign_keys", "statistics", "finish")
_LOAD_BUFFERS = Bytes(384 * 1024**2)
_LOAD_LOG = Bytes(256 * 1024**2)


def path_for(spec: Spec, backend: str) -> Path:
    """Where the image of this experiment's database lies or will lie."""
    parts = [
        # In the image, in a virtual machine or not, it is the same server that loads.
        backend if backend == "local" else image.recipe_key(),
        spec.database.engine,
        spec.database.filesystem,
        # The cluster's links to log and temporary space name where it was loaded.
        str(PLACE.data),
        str(int(spec.storage.size)),
        *(_tpcc_parts(spec.tpcc) if spec.tpcc else ("", "")),
        f"{spec.tpch.scale:g}" if spec.tpch else "",
        str(int(_log_size(spec))),
        _fingerprint(spec),
    ]
    if spec.sql is not None:
        parts += ["sql", spec.sql.load.fingerprint()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    folder = cache_dir() / "databases"
    folder.mkdir(exist_ok=True)
    names = (
        *([f"tpcc-{spec.tpcc.warehouses}w"] if spec.tpcc else []),
        *(["sql"] if spec.sql else []),
        *([f"tpch-sf{spec.tpch.scale:g}"] if spec.tpch else []),
    )
    return folder / f"{'-'.join((*names, key))}.img"


def _tpcc_parts(want: TpccTable) -> tuple[str, str]:
    """HammerDB has no seed."""
    return str(want.warehouses), str(want.seed) if want.driver == "hotset" else want.driver


def find_saved(path: Path) -> SavedImage | None:
    """The image, if it was loaded and finished before."""
    facts = path.with_suffix(".json")
    if not (path.exists() and facts.exists()):
        return None
    known = json.loads(facts.read_text())
    databases = {
        workload: SavedDatabase(Bytes(saved["bytes"]), saved["folder"])
        for workload, saved in known["databases"].items()
    }
    return SavedImage(path, databases, known["version"])


def new_file(path: Path, size: Bytes) -> Path:
    """An empty disk for the load, under a name that no run takes for a finished image.

    It is this process's own, whatever another one loads meanwhile, and goes away with it.

    :raises PrerequisiteMissingError: the cache's disk may become full.
    """
    free = Bytes(shutil.disk_usage(path.parent).free)
    if free < size:
        raise PrerequisiteMissingError(
            f"loading the database takes up to {size} (storage.size) in {path.parent}, which has"
            f" {free} free: free some, or name a folder on another disk in XDG_CACHE_HOME"
        )
    building = _building(path)
    building.unlink(missing_ok=True)
    atexit.register(building.unlink, missing_ok=True)
    Local().run(["truncate", "-s", str(int(size)), str(building)])
    return building


def build(lab: Lab, spec: Spec, path: Path, password: str, report: Reporter) -> SavedImage:
    """Load the database onto the lab's saved-image disk and finish the image at ``path``.

    The load runs on flash: slow storage would only make it longer, not other.
    """
    machine, cleanup = lab.machine, lab.cleanup
    assert lab.saved is not None, "the lab was started without a disk for the image"
    cleanup.leftover("remove an unfinished image", ["rm", "-f", str(_building(path))])
    with cleanup.part():
        filesystem.make(machine, lab.saved, spec.database.filesystem)
        # Discard: what was deleted again leaves holes, which no restore has to copy.
        mount(machine, cleanup, lab.saved, PLACE.data, "-o", "noatime,discard")
        volume_on_data(machine, cleanup)
        server = PostgresServer(machine, PLACE, password)
        server.create()
        server.start(load_settings(_LOAD_BUFFERS, 20, _log_size(spec)))
        mark = cleanup.mark()
        cleanup.call("stop the server", lambda: server.stop("immediate"))
        server.make_temporary_space()
        databases: dict[Workload, SavedDatabase] = {}
        if spec.tpcc is not None:
            databases["tpcc"] = _load_tpcc(server, spec.tpcc, report)
        if spec.sql is not None:
            databases["sql"] = _load_sql(server, spec.sql, report)
        if spec.tpch is not None:
            databases["tpch"] = _load_tpch(server, spec.tpch, report)
        cleanup.forget(mark)
        server.trim_log()
        server.stop("fast")
        _write_out(machine, path.parent)
    facts = {
        "databases": {
            workload: {"bytes": int(database.size), "folder": database.folder}
            for workload, database in databases.items()
        },
        "version": server.version(),
    }
    _building(path).rename(path)
    path.with_suffix(".json").write_text(json.dumps(facts))
    saved = find_saved(path)
    assert saved is not None
    return saved


def _load_tpcc(server: PostgresServer, want: TpccTable, report: Reporter) -> SavedDatabase:
    server.create_database("tpcc")
    database = server.database("tpcc")
    if want.driver == "hammerdb":
        consistency.require(workload.build_by_hammerdb(database, want.warehouses, report))
        return _look_up(server, "tpcc")
    with report.task(f"loading {want.warehouses} warehouses (once)"):
        done = load(database, want.warehouses, seed=want.seed, observe=report.on_step)
    consistency.require(workload.check(database, report))
    loaded = _look_up(server, "tpcc")
    report.say(f"loaded {done.rows:,} rows, {loaded.size}, in {done.seconds:.0f} s")
    return loaded


def _load_sql(server: PostgresServer, want: SqlTable, report: Reporter) -> SavedDatabase:
    server.create_database("sql")
    with report.task(f"loading {want.load.given} (once)"):
        if want.load.kind == "archive":
            server.restore("sql", want.load.files[0])
        else:
            server.load("sql", want.load.files, report.figure)
        server.vacuum("sql")
    loaded = _look_up(server, "sql")
    report.say(f"loaded {loaded.size}")
    return loaded


def _load_tpch(server: PostgresServer, want: TpchTable, report: Reporter) -> SavedDatabase:
    server.create_database("tpch")
    database = PostgresTpch(server.database("tpch"))
    with report.task(f"loading TPC-H, scale {want.scale:g} (once)"):
        done = tpch_load.load(database, want.scale, cache_dir() / "tpch", report.on_step)
    loaded = _look_up(server, "tpch")
    report.say(f"loaded {sum(done.rows.values()):,} rows, {loaded.size}, in {done.seconds:.0f} s")
    return loaded


def _write_out(machine: Machine, folder: Path) -> None:
    """Have everything on the image's disk; whether a write was lost is only said here, since the
    load does without fsync.

    :raises LoadFailed: one was.
    """
    done = machine.run(["sync", "--file-system", str(PLACE.data)], timeout_s=600, check=False)
    if done.rc != 0:
        free = Bytes(shutil.disk_usage(folder).free)
        raise LoadFailed(
            f"writes to the database image were lost ({done.stderr.strip()}); {folder} has {free}"
            " free: is its disk full?"
        )


def _log_size(spec: Spec) -> Bytes:
    """The load's log must fit each arm's volume, as theirs does."""
    return min(_LOAD_LOG, log_size(spec.tier.volume))


def _building(path: Path) -> Path:
    return path.with_suffix(f".{os.getpid()}.building")


def _look_up(server: PostgresServer, name: str) -> SavedDatabase:
    """Size of a database, and where its files lie in the cluster."""
    with closing(server.database(name).session()) as session:
        ((size, oid),) = session.query(
            "SELECT pg_database_size(oid), oid::bigint FROM pg_database"
            " WHERE datname = current_database()"
        )
    assert isinstance(size, int)
    return SavedDatabase(Bytes(size), f"base/{oid}")


def _fingerprint(spec: Spec) -> str:
    """Hash of the files that decide what a load writes; checks and queries leave nothing."""
    items: list[Traversable] = []
    if spec.tpcc is not None:
        items += [
            *(files("hotset.tpcc.data") / name for name in _LOADERS),
            *(tpcc_schema.SQL.file(spec.database.engine, name) for name in _TPCC_SQL),
        ]
    if spec.tpch is not None:
        items += [tpch_schema.SQL.file(spec.database.engine, name) for name in _TPCH_SQL]
    digest = hashlib.sha256()
    for item in items:
        digest.update(item.read_bytes())
    return digest.hexdigest()

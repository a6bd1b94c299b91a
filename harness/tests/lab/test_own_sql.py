"""A database of one's own in an experiment: restored from an archive, loaded from SQL, measured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hotset.core.machines.cleanup import read_journal
from hotset.core.paths import cache_dir
from tests.postgres_cluster import PASSWORD, Cluster
from tests.support import processes

pytestmark = [pytest.mark.lab, pytest.mark.night, pytest.mark.database]

HOTSET = Path(sys.executable).with_name("hotset")
OWN = """
name = "own"
repeats = 1
arms = ["baseline", "accelerated"]
[machine]
kind = "image"
[storage]
size = "448MiB"
[flash]
size = "640MiB"
[tier]
cache = "256MiB"
volume = "128MiB"
[sql]
load = "{load}"
size = "64MB"
define = {{ rows = 20000 }}
scripts = ["read.sql@3", "write.sql@1"]
users = 2
rampup_s = 0
duration_s = 3
find_rate = "p95<30s"
[warmup]
probe_s = 2
probe_max_s = 10
samples = 10
"""
TABLE = "CREATE TABLE own (id integer PRIMARY KEY, count integer NOT NULL, words text NOT NULL);\n"
ROWS = "INSERT INTO own SELECT n, 0, repeat(md5(n::text), 20) FROM generate_series(1, 20000) n;\n"
READ = "\\set id random(1, :rows)\nSELECT count, words FROM own WHERE id = :id;\n"
WRITE = "\\set id random(1, :rows)\nUPDATE own SET count = count + 1 WHERE id = :id;\n"


@pytest.fixture(autouse=True)
def own_images(tmp_path: Path) -> Iterator[None]:
    """Each archive holds the time it was made at, so that its image serves one test alone; beside
    those all that is cached is there."""
    own = tmp_path / "cache" / "hotset"
    (own / "databases").mkdir(parents=True)
    for kept in cache_dir().iterdir():
        if kept.name != "databases":
            (own / kept.name).symlink_to(kept)
    yield
    shutil.rmtree(tmp_path / "cache")


def hotset(folder: Path, load: str) -> subprocess.CompletedProcess[str]:
    (folder / "own.toml").write_text(OWN.format(load=load))
    (folder / "read.sql").write_text(READ)
    (folder / "write.sql").write_text(WRITE)
    own = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "DATA", "CACHE")}
    done = processes.run(
        [str(HOTSET), "experiment", "run", "own.toml", "--format", "json"],
        cwd=folder,
        env=os.environ | own,
        timeout_s=400,
    )
    assert read_journal(folder / "state/hotset/lab") == []
    return done


def archive(cluster: Cluster, file: Path) -> None:
    """Made by the pg_dump of this computer."""
    with cluster.fresh("own") as database:
        with closing(database.session()) as session:
            session.script(TABLE + ROWS)
        where = ["-h", database.host, "-p", str(database.port), "-U", database.user]
        argv = [str(cluster.binaries / "pg_dump"), *where, "-Fc", "-f", str(file), "own"]
        subprocess.run(argv, env=os.environ | {"PGPASSWORD": PASSWORD}, check=True)


def test_an_archive_is_restored_and_measured_before_and_after(
    cluster: Cluster, tmp_path: Path
) -> None:
    archive(cluster, tmp_path / "own.dump")
    done = hotset(tmp_path, "own.dump")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["state"], set(result["factors"])) == ("complete", {"sql"})
    arms = {arm["name"]: arm for arm in result["arms"]}
    assert list(arms) == ["baseline", "accelerated"]
    for arm in arms.values():
        (repeat,), (rate,) = arm["repeats"], arm["rates"]
        assert (arm["workload"], repeat["nopm"], repeat["failed"]) == ("sql", None, 0)
        kinds = repeat["transactions"]
        assert kinds["read"]["committed"] > kinds["write"]["committed"] > 0
        assert kinds["read"]["latency_ms"]["p95"] > 0
        assert rate["limits"] == ["p95<30s"]
        assert rate["trials"]
    assert arms["accelerated"]["repeats"][0]["hit_ratio"] > 0.9
    assert [one["name"] for one in result["experiment"]["scripts"]] == ["read", "write"]
    page = tmp_path / "data/hotset/runs" / result["run"] / "report.html"
    assert "UPDATE own" in page.read_text()


def test_sql_that_fails_is_named_and_nothing_is_kept(tmp_path: Path) -> None:
    (load := tmp_path / "load").mkdir()
    (load / "1.sql").write_text(TABLE)
    (load / "2.sql").write_text("-- rows\n" + ROWS.replace("own", "owm"))
    done = hotset(tmp_path, "load")
    assert done.returncode == 4, done.stderr
    assert 'load/2.sql:2: ERROR:  relation "owm" does not exist' in done.stderr

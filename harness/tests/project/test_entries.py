"""The program `hotset` of the packages and of the container, run from their own texts.

pip's, which a checkout has, is run by all other tests.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hotset.core import extras
from release import entry
from tests.postgres_cluster import Cluster
from tests.support import processes

ROOT = Path(__file__).parents[3]


def program(of: str, folder: Path) -> Path:
    """It, for this Python: with its modules where a checkout has them."""
    text = entry.in_container()
    if of == "package":
        text = entry.in_package(ROOT / "packaging/hotset")
        (folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}").mkdir(
            parents=True
        )
        text = text.replace(f"{extras.PACKAGED}/lib", str(folder / "lib"))
    file = folder / "hotset"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.database
@pytest.mark.parametrize("of", ["package", "container"])
def test_the_installed_program_starts_workers_that_are_workers(
    of: str, cluster: Cluster, tmp_path: Path
) -> None:
    """They ran the command again: TPC-C could not be loaded, nor SQL be run."""
    database = cluster.database()
    (tmp_path / "one.sql").write_text("SELECT 1;\n")
    argv = [sys.executable, "-I", str(program(of, tmp_path)), "sql", "run", "--script=one.sql"]
    argv += ["--users=2", "--rampup=0", "--duration=1", "--no-keep", "--format=csv"]
    argv.append(f"--dsn=postgresql://{database.user}@127.0.0.1:{database.port}/{database.dbname}")
    done = processes.run(
        argv, cwd=tmp_path, env=os.environ | {"HOTSET_PASSWORD": database.password}
    )
    assert done.returncode == 0, done.stderr
    assert "hotset:" not in done.stderr

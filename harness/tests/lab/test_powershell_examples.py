"""The examples of the PowerShell module's help, run on a lab's disk and its database."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hotset.core.progress import Reporter
from hotset.experiment.site import live
from tests import powershell
from tests.api_server import Served, serving
from tests.cli_server import XDG, plain_environment
from tests.one_lab import ON_ONE_LAB, one_lab
from tests.powershell import MODULE

pytestmark = ON_ONE_LAB
EXPERIMENT = "20261126-061610-demo"
SCRIPT = Path(__file__).parents[1].joinpath("powershell_examples.ps1")


@pytest.fixture
def served(tmp_path: Path, own_folders: Path) -> Iterator[tuple[Served, live.Live]]:
    """An API beside a lab that is up."""
    shell = {name: str(own_folders / name) for name in set(XDG) - {"XDG_CACHE_HOME"}}
    powershell.shell()
    remote = own_folders / "XDG_CONFIG_HOME" / "hotset"
    remote.mkdir(parents=True)
    (remote / "remote.toml").write_text(f'folders = ["{tmp_path}"]\n')
    shutil.copy(MODULE.parents[1] / "experiments/demo.toml", tmp_path / "shop.toml")
    # What predictions learn from.
    run = own_folders / "XDG_DATA_HOME/hotset/runs" / EXPERIMENT
    run.mkdir(parents=True)
    shutil.copy(MODULE.parents[1] / "reports/published" / EXPERIMENT / "result.json", run)
    for name in ("checkout", "search"):
        (tmp_path / f"{name}.sql").write_text("SELECT 1\n")
    password = tmp_path / "password"
    password.write_text("a-password-of-the-tests\n")
    with one_lab():
        up = live.up(1, "nas-2014", Reporter(True))
        try:
            with serving({**plain_environment(), **shell}, password=password) as found:
                yield found, up
        finally:
            live.take_down(print)


def outcomes(served: tuple[Served, live.Live], which: str, folder: Path) -> list[dict[str, Any]]:
    api, up = served
    address = urlsplit(up.dsn)
    variables = {
        "URI": api.uri,
        "TOKEN": api.token,
        "DSN": up.dsn.replace(f"{address.username}@", ""),
        "DB_USER": str(address.username),
        "DB_PASSWORD": Path(up.password_file).read_text(encoding="utf-8").strip(),
    }
    argv = ["-NoProfile", "-NonInteractive", "-File", str(SCRIPT), str(MODULE), which, str(folder)]
    done = subprocess.run(
        [powershell.shell(), *argv],
        env={**api.environment, **variables},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.stdout.strip(), done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("[") :])
    return found


def failures(found: list[dict[str, Any]]) -> str:
    return "\n".join(f"{one['Ran']}\n    {one['Failure']}" for one in found if one.get("Failure"))


def test_the_examples_of_what_looks_and_of_the_three_acts_run(
    served: tuple[Served, live.Live], tmp_path: Path
) -> None:
    found = outcomes(served, "reading", tmp_path)
    assert failures(found) == ""
    ran = [one["Code"] for one in found if "Ran" in one]
    for act in ("Start-HotsetWarmup", "Invoke-HotsetTpcc", "Get-HotsetHitRatio"):
        assert any(act in code for code in ran), act
    assert len(ran) > 40


@pytest.mark.night
def test_the_examples_of_what_changes_something_run(
    served: tuple[Served, live.Live], tmp_path: Path
) -> None:
    found = outcomes(served, "others", tmp_path)
    assert failures(found) == ""
    assert len(found) > 15

"""Machines by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotset.core.machines import names as connect
from hotset.core.machines.base import MachineGoneError, PrerequisiteMissingError
from hotset.core.machines.names import MachineNameError, account, open_machine
from hotset.core.machines.ssh import Account


def test_this_computer() -> None:
    with open_machine("local") as machine:
        assert machine.kind == "local"
        assert machine.run(["cat"], stdin="x").stdout == "x"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("ssh://db1", ("db1", 22, "root")),
        ("ssh://dba@db1:2222", ("db1", 2222, "dba")),
        ("ssh://[::1]:22", ("::1", 22, "root")),
    ],
)
def test_ssh_names(
    name: str, parts: tuple[str, int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert account(name) == Account(*parts, None, tmp_path / ".ssh/known_hosts")
    (tmp_path / "key").write_text("")
    monkeypatch.setenv("HOTSET_SSH_KEY", str(tmp_path / "key"))
    assert account(name).client_key == tmp_path / "key"
    monkeypatch.setenv("HOTSET_SSH_KEY", str(tmp_path / "other"))
    with pytest.raises(MachineNameError, match=r"HOTSET_SSH_KEY=.*other: there is no such file"):
        account(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "remote",
        "db1",
        "ssh://",
        "ssh://db1:x",
        "ssh://db1/dev",
        "ssh://u:pw@db1",
        "ssh://db1:99999",
        "http://db1",
    ],
)
def test_what_is_no_machine_shows_the_forms(name: str) -> None:
    with (
        pytest.raises(MachineNameError, match=r"write local .* vm .* or ssh://"),
        open_machine(name),
    ):
        pass


def test_no_lab_is_up() -> None:
    with pytest.raises(PrerequisiteMissingError, match="no lab is up"), open_machine("vm"):
        pass


def test_nothing_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(connect.KNOWN_HOSTS_VARIABLE, str(tmp_path / "known"))
    gone = pytest.raises(MachineGoneError, match=r"^ssh://root@127.0.0.1:9: no connection: ")
    with gone, open_machine("ssh://127.0.0.1:9"):
        pass

"""What dpkg calls when the package comes and goes, run with this computer's own tools over an /etc
and a /var/lib of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hotset.core.extras import PACKAGED
from release import packages

ROOT = Path(__file__).parents[3]
HOME = "/var/lib/hotset-console"
# $1: holds what is mounted over the folders; $2: a script. No disk of this computer's is seen.
_OWN = """
for one in etc var/lib; do mount --bind "$1/$one" "/$one"; done
for one in /run /usr/local /sys/class/block /sys/fs/cgroup; do mount -t tmpfs none "$one"; done
exec sh -ec "$2"
"""


class System:
    """An /etc with accounts, in which scripts are called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for one in ("etc", "var/lib", "package/bin"):
            (folder / one).mkdir(parents=True)
        for name in ("passwd", "group", "shadow", "gshadow", "login.defs", "nsswitch.conf"):
            shutil.copy(Path("/etc", name), folder / "etc" / name)
        (folder / "package/bin/python3").symlink_to("/bin/true")
        for name in ("postinst", "prerm", "postrm"):
            text = packages.script(ROOT / "packaging/hotset" / name)
            (folder / name).write_text(text.replace(PACKAGED, str(folder / "package")))

    def sh(self, script: str) -> str:
        argv = ["unshare", "--mount", "sh", "-ec", _OWN, "own", str(self.folder), script]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def call(self, name: str, *words: str) -> str:
        return self.sh(f"sh {self.folder / name} {' '.join(words)}")

    def accounts(self) -> list[str]:
        """Lines of /etc/passwd and /etc/group that tell of hotset."""
        return self.sh("getent passwd hotset || :; getent group hotset || :").splitlines()


@pytest.fixture
def system(tmp_path: Path) -> System:
    if os.geteuid():
        pytest.skip("only root can make accounts")
    return System(tmp_path)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("useradd --uid 4711 --user-group --shell /bin/bash hotset", True),
        ("useradd --uid 4711 --gid nogroup --shell /bin/bash hotset", True),
        ("useradd --uid 4711 --gid nogroup --shell /usr/sbin/nologin hotset", False),
        ("useradd --non-unique --uid 0 --gid 0 --shell /usr/sbin/nologin hotset", True),
        (f"useradd --system --gid nogroup --shell /bin/false --home {HOME} hotset", False),
        ("groupadd --gid 4711 hotset", False),
        ("true", False),
    ],
)  # fmt: skip
def test_accounts_of_an_administrator_are_used_and_left_as_they_are(
    system: System, made: str, told: bool
) -> None:
    """An account without a group of its name ended the installation, and a purge took a group
    along that was there before."""
    system.sh(made)
    before = system.accounts()
    said = system.call("postinst", "configure")
    assert ("is root or can log in" in said) == told
    for _ in range(2):
        assert set(before) <= set(system.accounts())
        assert [line.partition(":")[0] for line in system.accounts()] == ["hotset"] * 2
        owner = "stat --format='%U %G %a' /etc/hotset/console"
        assert system.sh(owner) == "root hotset 750\n"
        system.call("postinst", "configure", "0.0.9")
    system.call("postrm", "remove")
    system.call("postrm", "purge")
    assert system.accounts() == before
    assert system.sh("find /etc /var/lib -name 'hotset*'") == ""


def test_an_account_that_is_made_may_not_log_in(system: System) -> None:
    system.call("postinst", "configure")
    account, group = (line.split(":") for line in system.accounts())
    assert 0 < int(account[2]) < 1000
    assert account[3:] == [group[2], "hotset console", HOME, "/usr/sbin/nologin"]


@pytest.mark.parametrize(("script", "word"), [("prerm", "remove"), ("postrm", "purge")])
def test_what_is_active_is_asked_in_one_way(system: System, script: str, word: str) -> None:
    """The second saw no engine whose device was gone already."""
    system.call("postinst", "configure")
    said = system.sh(
        "mkdir -p /sys/fs/cgroup/system.slice/hotset-engine-shop.service;"
        f" sh {system.folder / script} {word} 2>&1 || :"
    )
    assert "in use" in said
    assert "shop " in said
    assert system.accounts()

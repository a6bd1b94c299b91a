"""scripts/setup.sh against stand-ins of apt, dpkg, Python and Rust on a PATH of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.bare import bare_systems

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "setup.sh"
ALL = ("python", "image", "rust", "lab")
TOOLS = (
    "bash",
    "cut",
    "env",
    "grep",
    "install",
    "mktemp",
    "rm",
    "sed",
    "sort",
    "tr",
    "cat",
    "mkdir",
    "chmod",
    "touch",
    "dirname",
    "basename",
    "test",
    "true",
)

APT_GET = r"""#!/bin/bash
line="$*"
printf 'apt-get %s\n' "$line" >> "$STATE/log"
if [ "$(cat "$STATE/locked" 2>/dev/null || echo 0)" -gt 0 ] && [[ $line != *print-uris* ]]; then
    echo $(($(cat "$STATE/locked") - 1)) > "$STATE/locked"
    echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 48 (apt-daily)'
    exit 100
fi
if [ -e "$STATE/offline" ]; then
    echo "W: Failed to fetch http://archive/x  Temporary failure resolving 'archive'"
    [[ $line = *update* ]] && exit 0
    echo 'E: Unable to correct problems, you have held broken packages.'
    exit 100
fi
[[ $line = *update* ]] && { touch "$STATE/lists"; exit 0; }
[ -e "$STATE/lists" ] || { echo 'E: no lists'; exit 100; }
if [ -e "$STATE/removes" ]; then
    echo 'E: Packages need to be removed but remove is disabled.'
    exit 100
fi
if grep -qF "$(cat "$STATE/lacks" 2>/dev/null || echo nothing-at-all)" <<<"$line"; then
    echo 'E: Unable to correct problems, you have held broken packages.'
    exit 100
fi
echo '0 upgraded, 156 newly installed, 0 to remove and 0 not upgraded.'
echo 'Need to get 215 MB of archives.'
[[ $line = *print-uris* ]] && echo "'http://archive/cargo-web_1.96_amd64.deb' cargo-web_1.96 9"
[[ $line = *print-uris* || $line = *simulate* ]] && exit 0
[ ! -e "$STATE/endless" ] || exec "$REAL_PYTHON" -c "$ENDLESS" "$STATE/at work"
[ ! -e "$STATE/broken" ] || { echo 'E: Sub-process dpkg returned an error code (1)'; exit 100; }
[ -e "$POLICY" ] && echo 'services held back' >> "$STATE/log"
cp -a "$STATE/brought/." "$BIN/"
for word in ${line##*satisfy }; do touch "$STATE/installed/${word%,}"; done
"""
# Not by bash, which takes Ctrl-C as meant for the command that is just ending, and goes on.
ENDLESS = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(60)"
DPKG_QUERY = """#!/bin/bash
for name in "${@:3}"; do
    [ -e "$STATE/installed/$name" ] || { missing=1; continue; }
    printf '%s=install ok installed ' "$name"
done
[ -z "$missing" ]
"""
PYTHON = """#!/bin/bash
case "$*" in
    --version) echo Python VERSION ;;
    -c*) FITS ;;
    '-m venv '*) mkdir -p "$3/bin"; cp "$STATE/pip" "$3/bin/pip" ;;
esac
"""
PIP = """#!/bin/bash
printf 'pip %s\\n' "$*" >> "$STATE/log"
[ ! -e "$STATE/no-pip" ] || { echo 'ERROR: No matching distribution found for uv' >&2; exit 1; }
printf '#!/bin/bash\\necho uv 0.9\\n' > "$(dirname "$0")/uv"
chmod 755 "$(dirname "$0")/uv"
"""


@dataclass(slots=True)
class Computer:
    """A bare computer whose package manager has all that hotset needs."""

    folder: Path
    user: str = "0"
    sudo: bool = False

    def __post_init__(self) -> None:
        for name in ("bin", "installed", "brought", "home"):
            (self.folder / name).mkdir()
        for tool in (*TOOLS, "cp"):
            (self.folder / "bin" / tool).symlink_to(shutil.which(tool) or tool)
        self.program("apt-get", APT_GET)
        self.program("dpkg-query", DPKG_QUERY)
        self.program("sleep", '#!/bin/bash\nprintf "sleep %s\\n" "$*" >> "$STATE/log"\n')
        self.python("3.11.2", fits=True, place="brought")
        self.rust("1.96.0", place="brought")
        self.program("pip", PIP, place=".")
        self.state("os-release", 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n')
        # The script as it is, but for the paths that lie outside its PATH.
        text = SCRIPT.read_text()
        for path in ("/usr/sbin/policy-rc.d", "/usr/lib/rust-", "/etc/os-release"):
            assert path in text
            text = text.replace(path, f"{self.folder}/{Path(path).name}")
        (self.folder / "setup.sh").write_text(text)

    def program(self, name: str, text: str, place: str = "bin") -> None:
        (self.folder / place / name).write_text(text)
        (self.folder / place / name).chmod(0o755)

    def python(self, version: str, *, fits: bool, place: str = "bin") -> None:
        text = PYTHON.replace("VERSION", version).replace("FITS", "true" if fits else "false")
        self.program("python3", text, place)

    def rust(self, version: str, place: str = "bin") -> None:
        self.program("cargo", f"#!/bin/bash\necho cargo {version} '(0 2026)'\n", place)
        self.program("rustc", f"#!/bin/bash\necho rustc {version}\n", place)

    def state(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text)

    @property
    def policy(self) -> Path:
        return self.folder / "policy-rc.d"

    @property
    def log(self) -> str:
        file = self.folder / "log"
        return file.read_text() if file.exists() else ""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        self.program("id", f"#!/bin/bash\necho {self.user}\n")
        if self.sudo:
            self.program("sudo", '#!/bin/bash\necho "sudo $*" >> "$STATE/log"\n"${@:2}"\n')
        environment = {
            "PATH": str(self.folder / "bin"),
            "HOME": str(self.folder / "home"),
            "STATE": str(self.folder),
            "BIN": str(self.folder / "bin"),
            "REAL_PYTHON": sys.executable,
            "ENDLESS": ENDLESS,
            "POLICY": str(self.policy),
            "LC_ALL": "C",
        }
        return subprocess.Popen(
            ["bash", str(self.folder / "setup.sh"), *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, error = process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, out, error)


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    return Computer(tmp_path)


def test_what_will_be_installed_is_told_and_nothing_installed(computer: Computer) -> None:
    done = computer.run("list", *ALL)
    assert done.returncode == 0, done.stderr
    packages, uv = done.stderr.splitlines()
    assert "156 with what they need, 215 MB to fetch" in packages
    for name in ("python3-venv", "ca-certificates", "mmdebstrap", "gcc", "cargo-web", "tgt"):
        assert f" {name}" in packages
    assert "cargo-1.85" not in packages  # but the one of the three that apt would take
    assert "uv" in uv
    assert str(computer.folder / "home/.cache/hotset/uv") in uv
    assert list((computer.folder / "installed").iterdir()) == []


def test_a_bare_system_gets_all_of_it(computer: Computer) -> None:
    assert computer.run("list", *ALL).returncode == 0
    done = computer.run("install", *ALL)
    assert done.returncode == 0, done.stderr
    (call,) = [
        line
        for line in computer.log.splitlines()
        if re.search(r"yes --no-.* satisfy", line) and "print" not in line
    ]
    assert "--no-install-recommends --no-remove" in call
    assert "cargo (>= 1.85) | cargo-web (>= 1.85) | cargo-1.85" in call
    assert "services held back" in computer.log
    assert not computer.policy.exists()
    assert (computer.folder / "home/.cache/hotset/uv/bin/uv").exists()
    assert "uidmap" not in call


def test_a_system_that_has_everything_is_asked_nothing(computer: Computer) -> None:
    for line in ("list", "install"):
        computer.run(line, *ALL)
    (computer.folder / "log").unlink()
    for package in ("qemu-system-x86", "mmdebstrap"):
        assert (computer.folder / "installed" / package).exists()
    for verb in ("list", "install"):
        done = computer.run(verb, *ALL)
        assert (done.returncode, done.stderr) == (0, "")
    assert computer.log == ""


def test_parts_bring_only_what_is_theirs(computer: Computer) -> None:
    computer.run("list", *ALL)
    computer.run("install", "python")
    here = {one.name for one in (computer.folder / "installed").iterdir()}
    assert "python3-venv" in here
    assert here.isdisjoint({"mmdebstrap", "gcc", "qemu-system-x86"})


def test_without_root_the_whole_command_for_root_is_printed(computer: Computer) -> None:
    computer.user = "1000"
    done = computer.run("list", *ALL)
    assert done.returncode == 3
    assert "Run this once as root" in done.stderr
    command = done.stderr.splitlines()[-1].strip()
    assert command.startswith("apt-get update && apt-get satisfy --no-install-recommends '")
    assert "cargo (>= 1.85) | cargo-web (>= 1.85)" in command
    assert "uidmap" in command
    assert list((computer.folder / "installed").iterdir()) == []


def test_without_root_a_sudo_that_asks_nothing_is_used(computer: Computer) -> None:
    computer.user, computer.sudo = "1000", True
    assert computer.run("list", *ALL).returncode == 0
    done = computer.run("install", *ALL)
    assert done.returncode == 0, done.stderr
    assert "sudo -n env LC_ALL=C" in computer.log
    assert (computer.folder / "installed/uidmap").exists()
    assert not computer.policy.exists()


def test_another_apt_is_waited_for_and_named(computer: Computer) -> None:
    computer.state("locked", "3")
    done = computer.run("list", *ALL)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("apt is in use by process 48 (apt-daily): waiting") == 1
    assert computer.log.count("sleep 5") == 3


def test_an_apt_that_never_ends_is_not_waited_for_for_ever(computer: Computer) -> None:
    computer.state("locked", "100000")
    done = computer.run("list", *ALL)
    assert done.returncode == 3
    assert "still in use by process 48 (apt-daily)" in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("verb", ["list", "install"])
def test_without_a_network_one_line_says_so(computer: Computer, verb: str) -> None:
    computer.state("offline")
    done = computer.run(verb, *ALL)
    assert done.returncode == 3
    line = done.stderr.splitlines()[-1]
    assert "the package lists cannot be fetched" in line
    assert "Temporary failure resolving 'archive'" in line
    assert "connected" in line
    assert not computer.policy.exists()


def test_a_package_that_this_system_does_not_have_is_named(computer: Computer) -> None:
    computer.state("lacks", "cargo (>= 1.85)")
    done = computer.run("list", *ALL)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "no package for: cargo (>= 1.85)" in line
    assert "rustup.rs" in line
    assert "mmdebstrap" not in line


def test_nothing_of_the_users_is_removed(computer: Computer) -> None:
    computer.state("removes")
    done = computer.run("list", *ALL)
    assert done.returncode == 3
    assert "apt would remove packages of yours" in done.stderr


def test_a_failed_installation_says_why_and_leaves_no_policy(computer: Computer) -> None:
    computer.run("list", *ALL)
    computer.state("broken")
    done = computer.run("install", *ALL)
    assert done.returncode == 3
    assert "dpkg returned an error code (1)" in done.stderr.splitlines()[-1]
    assert not computer.policy.exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_installation_leaves_no_policy(
    computer: Computer, how: signal.Signals
) -> None:
    computer.run("list", *ALL)
    computer.state("endless")
    process = computer.start("install", *ALL)
    while not (computer.folder / "at work").exists():
        assert process.poll() is None
        time.sleep(0.05)
    assert computer.policy.exists()
    os.killpg(process.pid, how)
    process.communicate(timeout=120)
    assert process.returncode != 0
    assert not computer.policy.exists()


def test_a_policy_of_the_users_is_kept_and_one_of_a_killed_set_up_is_not(
    computer: Computer,
) -> None:
    computer.run("list", *ALL)
    computer.policy.write_text("#!/bin/sh\nexit 0\n")
    assert computer.run("install", "python").returncode == 0
    assert computer.policy.read_text() == "#!/bin/sh\nexit 0\n"
    computer.policy.write_text("#!/bin/sh\n# by hotset, while it installs packages\nexit 101\n")
    assert computer.run("install", "image").returncode == 0
    assert not computer.policy.exists()


def test_another_distribution_is_told_what_to_install(computer: Computer) -> None:
    (computer.folder / "bin/apt-get").unlink()
    (computer.folder / "bin/dpkg-query").unlink()
    done = computer.run("list", *ALL)
    assert done.returncode == 3
    line = done.stderr.splitlines()[-1]
    assert "neither Debian nor Ubuntu" in line
    assert "mmdebstrap" in line
    assert "make build" in line


@pytest.mark.parametrize(
    ("version", "asked"), [("1.96.0", False), ("1.85.0", False), ("1.84.1", True), ("0.66.0", True)]
)
def test_a_rust_that_is_there_is_taken_if_new_enough(
    computer: Computer, version: str, asked: bool
) -> None:
    computer.rust(version)
    done = computer.run("list", "rust")
    assert done.returncode == 0, done.stderr
    assert ("cargo" in done.stderr) is asked


@pytest.mark.parametrize(("system", "has_chromium"), [("debian", True), ("ubuntu", False)])
def test_the_tests_bring_a_browser_where_it_is_a_package(
    computer: Computer, system: str, has_chromium: bool
) -> None:
    computer.state("os-release", f"ID={system}\n")
    done = computer.run("list", "tests")
    assert done.returncode == 0, done.stderr
    assert "postgresql" in done.stderr
    assert "rustfmt" in done.stderr
    assert (" chromium" in done.stderr) is has_chromium


def test_an_old_rustup_is_not_apts_to_mend(computer: Computer) -> None:
    computer.program("rustup", "#!/bin/bash\n")
    computer.rust("1.80.0")
    done = computer.run("list", "rust")
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "setup: Rust 1.85 or newer is needed (cargo here: 1.80.0): "
        "run rustup default stable && rustup update"
    ]


def test_an_old_python_is_named(computer: Computer) -> None:
    computer.python("3.9.2", fits=False, place="brought")
    computer.run("list", *ALL)
    done = computer.run("install", "python")
    assert done.returncode == 3
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "Python 3.9.2" in done.stderr


def test_a_python_with_pip_needs_no_package(computer: Computer) -> None:
    computer.python("3.14.0", fits=True)
    (computer.folder / "installed/ca-certificates").touch()
    done = computer.run("list", "python")
    assert "packages of this system" not in done.stderr
    assert "uv" in done.stderr


def test_a_failing_pip_says_why(computer: Computer) -> None:
    computer.python("3.14.0", fits=True)
    computer.state("no-pip")
    computer.run("list", "python")
    done = computer.run("install", "python")
    assert done.returncode == 3
    line = done.stderr.splitlines()[-1]
    assert "uv could not be installed: ERROR: No matching distribution found for uv" in line


@pytest.mark.parametrize("words", [(), ("sideways",), ("list",), ("install", "all"), ("list", "x")])
def test_usage(computer: Computer, words: tuple[str, ...]) -> None:
    done = computer.run(*words)
    assert done.returncode == 2
    assert "list|install python|image|rust|lab|tests" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("script", ["scripts/setup.sh", "hotset"])
def test_shell_is_clean(script: str) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    done = subprocess.run(
        ["shellcheck", str(ROOT / script)], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


# ---------------------------------------------------------------- the launcher


def test_the_launcher_runs_this_folders_hotset_from_anywhere(tmp_path: Path) -> None:
    link = tmp_path / "hotset"
    link.symlink_to(ROOT / "hotset")
    done = subprocess.run(
        [str(link), "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("hotset ")


def test_the_launcher_says_what_builds_it(tmp_path: Path) -> None:
    shutil.copy(ROOT / "hotset", tmp_path / "hotset")
    done = subprocess.run([str(tmp_path / "hotset")], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == f"hotset: not built yet: run `make -C {tmp_path} setup build`\n"


def test_make_makes_each_thing_wait_for_its_own_part() -> None:
    """The graph of `make demo`: one apt at a time, the image's packages first."""
    done = subprocess.run(
        ["make", "-rpn", "READY_PARTS=python image rust lab", "ready"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if "MAKE" not in name},
    )
    for rule in (
        r"^setup-image:.* \| .*setup-python",
        r"^setup-rust:.* \| .*setup-image",
        r"^setup-lab:.* \| .*setup-rust",
        r"^image:.*\| .*setup-image",
        r"^\.venv/\.synced:.*\| .*setup-python",
        r"^cache-layer/crates/target/release/hotset-engine:.*\| .*setup-rust",
        r"^cache-layer/crates/target/release/flashdev:.*\| .*setup-rust",
    ):
        assert re.search(rule, done.stdout, re.MULTILINE), rule


# ---------------------------------------------------------------- the README's commands


def test_what_runs_after_a_demo_is_told_from_what_needs_more() -> None:
    readme = """
```
./hotset runs show last          # the table again
hotset tier create shop --flash /dev/disk/by-id/nvme-… --cache 2GiB \\
       --volume 1GiB
make install
```
"""
    reference = "# Command line\n\n## hotset\n\n## hotset tier\n\n## hotset tier create\n"
    *exact, doctor, every = bare_systems.readme_commands(readme, reference)
    assert exact == ["./hotset runs show last", "make install"]
    assert doctor == "hotset doctor"
    assert "'hotset tier --help' 'hotset tier create --help'" in every

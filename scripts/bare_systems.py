"""The README's two commands on bare systems: essential packages and make, no Python, Rust or uv.

Each system is unpacked into a folder and entered in namespaces of its own (mounts, processes,
IPC), as root and as a user without root, with a fresh clone of what is committed here. There the
README's commands are run as they stand. What ran, for how long and how it ended is printed as a
Markdown table; the logs stay in the work folder. Needs root, mmdebstrap, and what the commands
themselves need of the kernel (FUSE, loop devices, user namespaces).

    python3 scripts/bare_systems.py --system debian12 --user root --run demo
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).parents[1]
SUITES = {"debian12": "bookworm", "debian13": "trixie", "ubuntu2404": "noble"}
UBUNTU = "http://archive.ubuntu.com/ubuntu"
USERS = ("root", "user")
USER_ID = 1000
CLONE = "hotset"
RUNS = {
    "demo": ("make demo",),
    "test": ("make test",),
    "test-fast": ("make setup-test", "make test-fast"),
    "setup": ("make setup build",),
}
NETWORK = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "PIP_INDEX_URL",
    "PIP_CERT",
    "UV_DEFAULT_INDEX",
    "SSL_CERT_FILE",
    "HOTSET_DEBIAN_MIRROR",
)
"""How this computer reaches package archives; taken along into the bare one."""
NEEDS_MORE = re.compile(r"…|/dev/|://|\bRUN\b|console$|tier |heat |warmup ")
"""What a command of the README has that a system with a finished demo has not."""
NODES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
    "fuse": (10, 229),
    "net/tun": (10, 200),
}
"""Device nodes that everybody may open, as udev sets them up."""
ROOT_NODES = {"loop-control": (10, 237), "kvm": (10, 232)}
LOOPS = 64


@dataclass(frozen=True, slots=True)
class Step:
    """One command as it ran in a bare system. ``expected`` is whether it ended as it should."""

    system: str
    user: str
    command: str
    seconds: float
    code: int
    expected: bool
    last_line: str


def main() -> int:
    if sys.argv[1:2] == ["--inside"]:
        return inside(*sys.argv[2:])
    options = _options()
    if os.geteuid() != 0:
        print("bare_systems.py: only root can unpack and enter whole systems", file=sys.stderr)
        return 3
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _end)
    steps: list[Step] = []
    for system in options.system:
        base = build_base(system, options.work)
        for user in options.user:
            steps += try_out(base, system, user, options)
            print(table(steps), flush=True)
    return 0 if all(step.expected for step in steps) else 4


def _end(number: int, _frame: object) -> None:
    """What was unpacked is removed on the way out; its processes end with their namespace."""
    sys.exit(128 + number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--system", choices=SUITES, action="append")
    parser.add_argument("--user", choices=USERS, action="append")
    parser.add_argument("--run", choices=RUNS, action="append", help="default: demo, then test")
    parser.add_argument("--work", type=Path, default=Path("/var/tmp/hotset-bare-systems"))  # noqa: S108
    parser.add_argument("--keep", action="store_true", help="leave the systems' folders there")
    options = parser.parse_args()
    options.system = options.system or list(SUITES)
    options.user = options.user or list(USERS)
    options.run = options.run or ["demo", "test"]
    options.work.mkdir(parents=True, exist_ok=True)
    return options


# ---------------------------------------------------------------- the system, from outside


def build_base(system: str, work: Path) -> Path:
    """The system's archive: essential packages, apt, make and passwd. Kept for the next time."""
    suite, archive = SUITES[system], work / f"{system}.tar"
    if archive.exists():
        return archive
    argv = ["mmdebstrap", "--quiet", "--variant=apt", "--include=make,passwd"]
    if system.startswith("ubuntu"):
        # Debian has no keyring of Ubuntu's; what runs there is thrown away again.
        pockets = (suite, f"{suite}-updates", f"{suite}-security")
        sources = [f"deb [trusted=yes] {UBUNTU} {pocket} main universe" for pocket in pockets]
        argv += ['--aptopt=Acquire::AllowInsecureRepositories "true"', suite]
    else:
        mirror = os.environ.get("HOTSET_DEBIAN_MIRROR")
        sources, argv = ([mirror] if mirror else []), [*argv, suite]
    unfinished = archive.with_suffix(".unfinished.tar")
    subprocess.run([*argv, str(unfinished), *sources], check=True)
    unfinished.rename(archive)
    return archive


def try_out(base: Path, system: str, user: str, options: argparse.Namespace) -> list[Step]:
    """Run the commands in a fresh copy of the system, which is removed afterwards."""
    logs = options.work / f"{system}-{user}"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    root = Path(tempfile.mkdtemp(prefix=f"{system}-{user}-", dir=options.work))
    root.chmod(0o755)
    try:
        subprocess.run(["tar", "-C", str(root), "-xf", str(base)], check=True)
        prepare(root)
        home = root / ("root" if user == "root" else "home/user")
        clone = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(home / CLONE)]
        subprocess.run(clone, check=True)
        (logs / "plan.json").write_text(json.dumps([system, user, commands(options.run)]))
        namespaces = ["--mount", "--pid", "--ipc", "--uts", "--propagation", "private"]
        subprocess.run(
            [
                "unshare",
                *namespaces,
                "--fork",
                "--kill-child",
                sys.executable,
                __file__,
                "--inside",
                str(root),
                str(logs),
            ],
            check=True,
        )
        return [Step(**one) for one in json.loads((logs / "steps.json").read_text())]
    finally:
        if not options.keep:
            shutil.rmtree(root)


def prepare(root: Path) -> None:
    """What an installer would have set: name servers, certificates and proxies, the table of
    mounts, a user."""
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/mtab").unlink(missing_ok=True)
    (root / "etc/mtab").symlink_to("/proc/self/mounts")
    own = Path("/usr/local/share/ca-certificates")
    if own.is_dir():
        shutil.copytree(own, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)
    dump = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True)
    lines = re.findall(r'^Acquire::(?:https?|Check)\b.* ".+";$', dump.stdout, re.MULTILINE)
    (root / "etc/apt/apt.conf.d/90this-computer").write_text("\n".join(lines) + "\n")
    subprocess.run(
        [
            "chroot",
            str(root),
            "useradd",
            "--create-home",
            "--shell",
            "/bin/bash",
            "--uid",
            str(USER_ID),
            "user",
        ],
        check=True,
    )


def commands(runs: Sequence[str]) -> list[str]:
    """The runs' commands, and after a demo every command of the README that can be run there."""
    found: list[str] = []
    for run in runs:
        found += RUNS[run]
        if run == "demo":
            texts = ((ROOT / name).read_text() for name in ("README.md", "docs/reference/cli.md"))
            found += readme_commands(*texts)
    return found


def readme_commands(readme: str, reference: str) -> list[str]:
    """The commands of the README that need nothing but a finished demo, and one that asks every
    command of the reference for its help."""
    exact = []
    for block in re.findall(r"^```\n(.*?)^```", readme, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.partition("  #")[0].strip()
            if re.match(r"(\./)?hotset |make install$", command) and not NEEDS_MORE.search(command):
                exact.append(command)
    others = [f"{one} --help" for one in re.findall(r"^## (hotset .*)$", reference, re.MULTILINE)]
    each = "do echo $one; $one >/dev/null || exit 1; done"
    every = f"for one in {' '.join(map(shlex.quote, others))}; {each}"
    return [*exact, "hotset doctor", every]


# ---------------------------------------------------------------- the system, from inside


def inside(root: str, logs: str) -> int:
    """In new namespaces: make the folder the root of all there is, then run the plan."""
    results = os.open(logs, os.O_RDONLY | os.O_DIRECTORY)
    system, user, planned = json.loads((Path(logs) / "plan.json").read_text())
    enter(Path(root))
    steps: list[Step] = []
    log = os.fdopen(os.open("log", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=results), "w")
    if user != "root":
        subprocess.run(["chown", "-R", "user:user", "/home/user"], check=True)
    for step in play(system, user, planned, log):
        steps.append(step)
        handle = os.open("steps.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=results)
        with os.fdopen(handle, "w") as file:
            json.dump([asdict(one) for one in steps], file, indent=1)
    return 0


def play(system: str, user: str, planned: Sequence[str], log: TextIO) -> Iterator[Step]:
    """Run the plan. A user without root is told what root shall run; root runs just that."""
    for command in planned:
        step, text = execute(system, user, command, log)
        order = re.search(r"Run this once as root.*\n\s*(apt-get .*)", text)
        if step.code == 0 or order is None or user == "root":
            yield step
            continue
        yield Step(**{**asdict(step), "expected": True})
        told = order[1].replace("satisfy ", "satisfy --yes ")
        yield execute(system, "root", told, log)[0]
        yield execute(system, user, command, log)[0]


def execute(system: str, user: str, command: str, log: TextIO) -> tuple[Step, str]:
    home = "/root" if user == "root" else "/home/user"
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    kept = {name: os.environ[name] for name in NETWORK if name in os.environ}
    who = None if user == "root" else USER_ID
    began, text = time.monotonic(), []
    process = subprocess.Popen(
        ["bash", "-lc", command],
        cwd=Path(home) / CLONE if Path(home, CLONE).exists() else "/",
        env={"HOME": home, "USER": user, "PATH": path, "TERM": "dumb", **kept},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        user=who,
        group=who,
        extra_groups=None if who is None else [],
    )
    assert process.stdout is not None
    print(f"== {system} {user}: {command}", file=log, flush=True)
    for line in process.stdout:
        text.append(line)
        seconds = time.monotonic() - began
        print(f"{seconds:7.1f} {line}", end="", file=log, flush=True)
    code = process.wait()
    seconds = time.monotonic() - began
    print(f"{seconds:7.1f} == code {code}", file=log, flush=True)
    last = next((line.strip() for line in reversed(text) if line.strip()), "")
    return Step(system, user, command, round(seconds, 1), code, code == 0, last[:100]), "".join(
        text
    )


def enter(root: Path) -> None:
    """pivot_root rather than chroot: in a chroot nobody may make user namespaces."""
    mount("--bind", str(root), str(root))
    mount("-t", "proc", "proc", str(root / "proc"))
    mount("--rbind", "/sys", str(root / "sys"))
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(root / "run"))
    make_devices(root / "dev")
    old = root / "old-root"
    old.mkdir()
    subprocess.run(["pivot_root", str(root), str(old)], check=True)
    os.chdir("/")
    if ctypes.CDLL(None, use_errno=True).umount2(b"/old-root", 2) != 0:  # MNT_DETACH
        raise OSError(ctypes.get_errno(), "umount2 /old-root")
    Path("/old-root").rmdir()
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"


def make_devices(dev: Path) -> None:
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(dev))
    (dev / "net").mkdir()
    loops = {f"loop{number}": (7, number) for number in range(LOOPS)}
    for name, (major, minor) in (NODES | ROOT_NODES | loops).items():
        if not Path("/dev", name).exists() and name not in loops:
            continue
        kind = 0o060000 if name in loops else 0o020000  # block or character device
        os.mknod(dev / name, kind | 0o600, os.makedev(major, minor))
        (dev / name).chmod(0o666 if name in NODES else 0o660)
    for folder, system, how in (
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=620,gid=5"),
        ("shm", "tmpfs", "mode=1777"),
    ):
        (dev / folder).mkdir()
        mount("-t", system, "-o", how, system, str(dev / folder))
    (dev / "ptmx").symlink_to("pts/ptmx")
    (dev / "fd").symlink_to("/proc/self/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (dev / name).symlink_to(f"/proc/self/fd/{number}")


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def table(steps: Sequence[Step]) -> str:
    """What ran, as Markdown."""
    lines = ["| system | as | command | seconds | code | last line |", "|---|---|---|---|---|---|"]
    for step in steps:
        command = step.command if len(step.command) < 60 else f"{step.command[:57]}…"
        mark = "" if step.expected else " **wrong**"
        shown = [
            step.system,
            step.user,
            f"`{command}`",
            f"{step.seconds:.0f}",
            f"{step.code}{mark}",
            step.last_line.replace("|", "\\|"),
        ]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

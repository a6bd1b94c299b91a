"""The README's two commands on bare systems: essential packages and make, no Python, Rust or uv.

Each system is unpacked into a folder and entered in namespaces of its own (mounts, processes,
IPC), as root and as a user without root, with a fresh clone of what is committed here. There the
README's commands are run unchanged. What ran, for how long and how it ended is printed as a
Markdown table; the logs stay in the work folder. Needs root, mmdebstrap, and what the commands
themselves need of the kernel (FUSE, loop devices, user namespaces).

    python3 -m release.bare.bare_systems --system debian12 --user root --run demo
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from release.bare.enter import enter
from release.bare.steps import Step, execute, table, write
from release.bare.unpack import SUITES, build_base, call_inside, remove_on_signals, unpacked

ROOT = Path(__file__).parents[3]
USERS = ("root", "user")
CLONE = "hotset"
RUNS = {
    "demo": ("make demo",),
    "test": ("make test",),
    "test-fast": ("make setup-test", "make test-fast"),
    "setup": ("make setup build",),
}
NEEDS_MORE = re.compile(r"…|/dev/|://|\bRUN\b|console$|tier |heat |warmup ")
"""Parts of a README's command that need more than a system with a finished demo has."""


def main() -> int:
    if sys.argv[1:2] == ["--inside"]:
        return inside(*sys.argv[2:])
    options = _options()
    if os.geteuid() != 0:
        print("bare_systems.py: only root can unpack and enter whole systems", file=sys.stderr)
        return 3
    remove_on_signals()
    steps: list[Step] = []
    for system in options.system:
        base = build_base(system, options.work)
        for user in options.user:
            steps += try_out(base, system, user, options)
            print(table(steps), flush=True)
    return 0 if all(step.expected for step in steps) else 4


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


def try_out(base: Path, system: str, user: str, options: argparse.Namespace) -> list[Step]:
    """Run the commands in a fresh copy of the system, which is removed afterwards."""
    logs = options.work / f"{system}-{user}"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    with unpacked(base, f"{system}-{user}", options.work, options.keep) as root:
        home = root / ("root" if user == "root" else "home/user")
        clone = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(home / CLONE)]
        subprocess.run(clone, check=True)
        (logs / "plan.json").write_text(json.dumps([system, user, commands(options.run)]))
        call_inside("release.bare.bare_systems", [str(root), str(logs)])
    return [Step(**fields) for fields in json.loads((logs / "steps.json").read_text())]


def commands(runs: Sequence[str]) -> list[str]:
    """The runs' commands, and after a demo every command of the README that can be run there."""
    commands: list[str] = []
    for run in runs:
        commands += RUNS[run]
        if run == "demo":
            texts = ((ROOT / name).read_text() for name in ("README.md", "docs/reference/cli.md"))
            commands += readme_commands(*texts)
    return commands


def readme_commands(readme: str, reference: str) -> list[str]:
    """The commands of the README that need nothing but a finished demo, and one that asks every
    command of the reference for its help."""
    exact = []
    for block in re.findall(r"^```\n(.*?)^```", readme, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.partition("  #")[0].strip()
            if re.match(r"(\./)?hotset |make install$", command) and not NEEDS_MORE.search(command):
                exact.append(command)
    others = [
        f"{command} --help" for command in re.findall(r"^## (hotset .*)$", reference, re.MULTILINE)
    ]
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
        write(steps, results)
    return 0


def play(system: str, user: str, planned: Sequence[str], log: TextIO) -> Iterator[Step]:
    """Run the plan. A user without root is told what root shall run; root runs just that."""
    folder = Path("/root" if user == "root" else "/home/user", CLONE)
    for command in planned:
        step, text = execute(system, user, command, log, folder)
        order = re.search(r"Run this once as root.*\n\s*(apt-get .*)", text)
        if step.code == 0 or order is None or user == "root":
            yield step
            continue
        yield Step(**{**asdict(step), "expected": True})
        line = order[1].replace("satisfy ", "satisfy --yes ")
        yield execute(system, "root", line, log, folder)[0]
        yield execute(system, user, command, log, folder)[0]


if __name__ == "__main__":
    sys.exit(main())

"""Takes mends back, one at a time, and tells which tests notice.

    python -m campaign.mends --work DIR --save FILE [--commit HASH]

Each mend of `campaign/mends.toml` is a commit whose change to programs still comes off today's,
wherever the files have moved since. It is reverted in a worktree below DIR, and the tests of the
folders that it changed are run; for a mend that they miss `make test` is. FILE gets a line a mend,
and one that it has is not made again. Ends with code 1 if a mend about data was noticed by neither.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_S = 3600.0
"""Of one run of tests."""
_WHAT = "not lab and not night"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A mend that was taken back.

    :ivar noticed_by: "folder", "make test" or nothing.
    :ivar first: the first test that failed.
    """

    commit: str
    subject: str
    about_data: bool
    noticed_by: str
    first: str


class DoesNotComeOffError(Exception):
    """A mend whose place has been changed since, or without which nothing can be tested."""


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="for the worktree, some 5 GB")
    parser.add_argument("--save", type=Path, required=True, metavar="FILE", help="the outcomes")
    parser.add_argument("--commit", action="append", metavar="HASH", help="default: all")
    parser.add_argument(
        "--folders", action="store_true", help="leave those that need make test for the next time"
    )
    given = parser.parse_args()
    mends = tomllib.loads((ROOT / "scripts/campaign/mends.toml").read_text())
    outcomes = _read(given.save)
    known = {outcome.commit for outcome in outcomes}
    tree = _worktree(given.work / "checkout")
    for kind in ("data", "others"):
        for commit in mends[kind]:
            if commit in known or commit not in (given.commit or [commit]):
                continue
            try:
                outcome = take_back(tree, commit, given.folders, about_data=kind == "data")
            except DoesNotComeOffError:
                print(f"{commit}: it does not come off today's program", flush=True)
                continue
            if outcome is None:
                print(f"{commit}: its folders do not notice", flush=True)
                continue
            outcomes.append(outcome)
            print(json.dumps(asdict(outcomes[-1])), flush=True)
            lines = (json.dumps(asdict(outcome)) for outcome in outcomes)
            given.save.write_text("".join(f"{line}\n" for line in lines))
    missed = [outcome for outcome in outcomes if not outcome.noticed_by]
    print(f"{len(outcomes)} mends taken back, {len(missed)} not noticed")
    return 1 if any(outcome.about_data for outcome in missed) else 0


def _read(file: Path) -> list[Outcome]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [Outcome(**json.loads(line)) for line in lines]


def _git(*words: str, where: Path = ROOT) -> str:
    argv = ["git", "-C", str(where), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def _worktree(tree: Path) -> Path:
    """What is committed, as it is now, with its programs and environment."""
    if not tree.exists():
        _git("worktree", "add", "--detach", str(tree), "HEAD")
    _git("checkout", "--force", "--detach", _git("rev-parse", "HEAD").strip(), where=tree)
    subprocess.run(["make", "build"], cwd=tree, check=True, stdout=sys.stderr)
    return tree


def take_back(tree: Path, commit: str, folders: bool, about_data: bool) -> Outcome | None:
    """Run the tests without a mend.

    :param folders: no others; None where they do not notice.
    :raises DoesNotComeOffError: what it changed has been changed since.
    """
    subject = _git("log", "-1", "--format=%s", commit).strip()
    try:
        programs = _revert(tree, commit)
        subprocess.run(["make", "build"], cwd=tree, check=True, stdout=sys.stderr)
        first = _fails(tree, tests_of(tree, programs))
        if first:
            return Outcome(commit, subject, about_data, "folder", first)
        if folders:
            return None
        first = _fails(tree, [["make", "test"]])
        return Outcome(commit, subject, about_data, "make test" if first else "", first)
    finally:
        _git("reset", "--hard", "--quiet", where=tree)


def _revert(tree: Path, commit: str) -> list[str]:
    """Take a commit's change off the programs, and off nothing else; returns their files.

    Git follows what has been renamed since.

    :raises DoesNotComeOffError: a program has been changed since where it was.
    """
    with suppress(subprocess.CalledProcessError):  # its tests and pages may well have
        _git("-c", "merge.renameLimit=0", "revert", "--no-commit", commit, where=tree)
    changed = _git("diff", "HEAD", "--name-only", "--no-renames", where=tree).split()
    programs = [path for path in changed if is_program(path)]
    unmerged = _git("diff", "--name-only", "--diff-filter=U", where=tree).split()
    if not programs or set(programs) & set(unmerged):
        raise DoesNotComeOffError(commit)
    tracked = set(_git("ls-tree", "-r", "--name-only", "HEAD", where=tree).splitlines())
    for path in set(changed) - set(programs):
        back = ["checkout", "HEAD", "--"] if path in tracked else ["rm", "--quiet", "--force", "--"]
        _git(*back, path, where=tree)
    return programs


def is_program(file: str) -> bool:
    """Whether a file is of a program that is installed, and neither a test nor a script.

    >>> [is_program(one) for one in ("harness/hotset/cli/jobs.py", "harness/tests/cli/test_cli.py")]
    [True, False]
    >>> is_program("cache-layer/crates/cache-core/src/metadata/tests/kill.rs")
    False
    >>> is_program("cache-layer/crates/boot/src/structures/tests.rs")
    False
    """
    path = Path(file)
    names = {*path.parts, path.stem}
    return path.suffix in (".py", ".rs") and not {"tests", "scripts"} & names


def tests_of(tree: Path, programs: list[str]) -> list[list[str]]:
    """The commands that run the tests of the folders of some files."""
    crates = sorted({program.split("/")[2] for program in programs if program.endswith(".rs")})
    commands = [["cargo", "test", "--package", _package(tree, crate)] for crate in crates]
    folders = set[str]()
    for program in programs:
        if program.endswith(".py"):
            top, _, subject, *_ = Path(program).parts
            tests = f"{top}/tests/{subject}"
            folders.add(tests if (tree / tests).is_dir() else f"{top}/tests")
    if folders:
        commands.append(["uv", "run", "--no-sync", "pytest", "-q", "-x", "-m", _WHAT, *folders])
    return commands


def _package(tree: Path, crate: str) -> str:
    manifest = tomllib.loads((tree / "cache-layer/crates" / crate / "Cargo.toml").read_text())
    return str(manifest["package"]["name"])


def _fails(tree: Path, commands: list[list[str]]) -> str:
    """The first test that fails; empty: none does.

    :raises DoesNotComeOffError: a command failed before it reached a test.
    """
    for argv in commands:
        where = tree / "cache-layer/crates" if argv[0] == "cargo" else tree
        done = subprocess.run(
            argv,
            cwd=where,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        )
        if done.returncode != 0:
            marks = ("FAILED ", "ERROR ", "test result: FAILED", "... FAILED")
            lines = [
                line for line in done.stdout.splitlines() if any(mark in line for mark in marks)
            ]
            if not lines:
                # A program or a test that cannot even be compiled without it notices nothing.
                raise DoesNotComeOffError(f"{' '.join(argv)} ends with {done.returncode}")
            return lines[0].strip()
    return ""


if __name__ == "__main__":
    sys.exit(main())

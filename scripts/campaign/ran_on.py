"""Calls the benchmarks' commands on the SQL Server that HOTSET_SQLSERVER_DSN names, one after
another, and writes what came of each into a section "Ran on" of docs/sql-server.md.

    HOTSET_SQLSERVER_DSN=… HOTSET_PASSWORD=… python -m campaign.ran_on [--driver FreeTDS]
        [--act WORD]… [--page FILE]

The database is for nothing else, and empty. An earlier section of the same product, version and
driver is replaced. HammerDB's acts run where HAMMERDB_HOME names a release. Ends with code 1 if an
act failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from hotset.databases.sqlserver import freetds, odbc
from hotset.hammerdb.release import HOME_VARIABLE

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/sql-server.md"
LIMIT_S = 3600.0
"""Of one act."""
SQL = "\\set number random(1, 1000)\nSELECT count(*) FROM sys.objects WHERE object_id > :number;\n"
_WINDOW = "--users 2 --rampup 30 --duration 30 --no-keep"
_HAMMERDB = "--driver hammerdb"
ACTS = {
    "connect": "database show",
    "TPC-C: build": "tpcc build --warehouses 1",
    "TPC-C: run": f"tpcc run --warehouses 1 {_WINDOW}",
    "TPC-C: check": "tpcc check",
    "TPC-C: replace": "tpcc build --warehouses 1 --replace --yes",
    "TPC-C: drop": "tpcc drop --yes",
    "TPC-H: build": "tpch build --scale 0.01",
    "TPC-H: run": "tpch run --no-keep",
    "TPC-H: check": "tpch check",
    "TPC-H: drop": "tpch drop --yes",
    "own SQL": f"sql run --script own.sql {_WINDOW}",
    "HammerDB: build": f"tpcc build --warehouses 1 {_HAMMERDB}",
    "HammerDB: run": "tpcc run --warehouses 1 --users 2 --rampup 60 --duration 60 --no-keep"
    f" {_HAMMERDB}",
    "HammerDB: drop": "tpcc drop --yes",
}
"""Commands by their names in the table."""
GOOD = "yes"
Call: TypeAlias = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--driver", metavar="NAME", help="default: the one that hotset takes")
    parser.add_argument("--act", action="append", choices=ACTS, help="default: all; then no page")
    parser.add_argument("--page", type=Path, default=PAGE, help="which gets the section")
    given = parser.parse_args()
    dsn = os.environ.get("HOTSET_SQLSERVER_DSN")
    if not dsn:
        parser.error("HOTSET_SQLSERVER_DSN names no server")
    if given.driver:
        dsn += f"{'&' if '?' in dsn else '?'}driver={given.driver}"
    commit = _commit()
    with TemporaryDirectory(prefix="hotset-ran-on-") as folder:
        (Path(folder) / "own.sql").write_text(SQL)
        product = product_of(_call(dsn, folder))
        outcomes = run(_call(dsn, folder), given.act or ACTS)
    if product and not given.act:
        driver = (
            "FreeTDS" if freetds.is_freetds(odbc.driver(given.driver)) else "Microsoft's driver"
        )
        text = section(f"{product}, by {driver}", commit, time.strftime("%Y-%m-%d"), outcomes)
        given.page.write_text(put(given.page.read_text(), text))
    return int(any(came_to != GOOD for came_to in outcomes.values()))


def run(call: Call, names: Iterable[str]) -> dict[str, str]:
    """Call each act, those after one that failed too; returns the result of each."""
    outcomes = dict[str, str]()
    for name in names:
        if name.startswith("HammerDB") and HOME_VARIABLE not in os.environ:
            outcomes[name] = f"not run: {HOME_VARIABLE} is not set"
        else:
            outcomes[name] = outcome(call(ACTS[name].split()))
        print(f"{name}: {outcomes[name]}", flush=True)
    return outcomes


def outcome(done: subprocess.CompletedProcess[str]) -> str:
    """`yes`, or what the command said at its end."""
    if done.returncode == 0:
        return GOOD
    lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if line.startswith("hotset: ")), lines[-1:])
    why = last if isinstance(last, str) else "".join(last)
    return f"failed ({done.returncode}): {why.removeprefix('hotset: ')}".replace("|", "\\|")


def product_of(call: Call) -> str:
    """Product and version, as the server names them; nothing where it does not answer."""
    done = call([*ACTS["connect"].split(), "--format", "json"])
    if done.returncode:
        return ""
    version = json.loads(done.stdout)["version"]
    return f"{version['product']}, version {version['version']}"


def section(where: str, commit: str, date: str, outcomes: Mapping[str, str]) -> str:
    """The section of the page: a line an act."""
    rows = [("act", "`hotset …`", "ran"), ("---", "---", "---")]
    rows += [(name, f"`{words}`", outcomes[name]) for name, words in ACTS.items()]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"### Ran on {where}\n\nhotset {commit}, {date}.\n\n{table}"


def put(page: str, text: str) -> str:
    """The page with this section, in the place of one with the same heading or at its end."""
    heading = re.escape(text.partition("\n")[0])
    earlier = re.compile(rf"^{heading}\n.*?(?=^#|\Z)", re.MULTILINE | re.DOTALL)
    match = earlier.search(page)
    if not match:
        return f"{page.rstrip()}\n\n{text}"
    after = page[match.end() :]
    return page[: match.start()] + text + ("\n" + after if after else "")


def _call(dsn: str, folder: str) -> Call:
    def call(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        program = str(Path(sys.executable).with_name("hotset"))
        argv = [program, *words, "--engine", "sqlserver", "--dsn", dsn]
        try:
            return subprocess.run(
                argv,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(argv, 124, "", f"no end within {LIMIT_S:.0f} s")

    return call


def _commit() -> str:
    argv = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

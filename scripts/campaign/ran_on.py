"""Calls the benchmarks' commands on the SQL Server that HOTSET_SQLSERVER_DSN names, one after
another, and writes what came of each into a section "Ran on" of docs/sql-server.md.

    HOTSET_SQLSERVER_DSN=… HOTSET_PASSWORD=… python -m campaign.ran_on [--driver FreeTDS]…
        [--act WORD]… [--page FILE]

The database is for nothing else, and empty. Each driver has a column; without `--driver` it is the
one that hotset takes. An earlier section of the same product and version is replaced. HammerDB's
acts run where HAMMERDB_HOME names a release. Ends with code 1 if an act failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
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
"""What is called, by what the table calls it."""
GOOD = "yes"
Call: TypeAlias = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--driver", action="append", metavar="NAME", help="a column; repeatable")
    parser.add_argument("--act", action="append", choices=ACTS, help="default: all; then no page")
    parser.add_argument("--page", type=Path, default=PAGE, help="which gets the section")
    given = parser.parse_args()
    address = os.environ.get("HOTSET_SQLSERVER_DSN")
    if not address:
        parser.error("HOTSET_SQLSERVER_DSN names no server")
    columns, product = dict[str, dict[str, str]](), ""
    for name in given.driver or [None]:
        dsn = f"{address}{'&' if '?' in address else '?'}driver={name}" if name else address
        with TemporaryDirectory(prefix="hotset-ran-on-") as folder:
            (Path(folder) / "own.sql").write_text(SQL)
            product = product_of(_call(dsn, folder)) or product
            outcomes = run(_call(dsn, folder), given.act or ACTS)
        driver = odbc.driver(name)
        columns["FreeTDS" if freetds.is_freetds(driver) else "Microsoft's driver"] = outcomes
    if product and not given.act:
        text = section(product, _commit(), time.strftime("%Y-%m-%d"), columns)
        given.page.write_text(put(given.page.read_text(), text))
    return int(any(said != GOOD for column in columns.values() for said in column.values()))


def run(call: Call, names: Iterable[str]) -> dict[str, str]:
    """What came of each act; those after one that failed are called all the same."""
    outcomes = dict[str, str]()
    for name in names:
        if _HAMMERDB in ACTS[name] and HOME_VARIABLE not in os.environ:
            outcomes[name] = f"not run: {HOME_VARIABLE} is not set"
        else:
            outcomes[name] = outcome(call(ACTS[name].split()))
        print(f"{name}: {outcomes[name]}", flush=True)
    return outcomes


def outcome(done: subprocess.CompletedProcess[str]) -> str:
    """`yes`, or what the command said at its end."""
    if done.returncode == 0:
        return GOOD
    said = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    last = next((line for line in reversed(said) if line.startswith("hotset: ")), said[-1:])
    why = last if isinstance(last, str) else "".join(last)
    return f"failed ({done.returncode}): {why.removeprefix('hotset: ')}".replace("|", "\\|")


def product_of(call: Call) -> str:
    """Product and version, as the server names them; nothing where it does not answer."""
    done = call([*ACTS["connect"].split(), "--format", "json"])
    if done.returncode:
        return ""
    version = json.loads(done.stdout)["version"]
    return f"{version['product']}, version {version['version']}"


def section(product: str, commit: str, date: str, columns: dict[str, dict[str, str]]) -> str:
    """The section of the page: a line an act."""
    head = ["act", "`hotset …`", *columns]
    rows = [
        [name, f"`{words}`", *(column[name] for column in columns.values())]
        for name, words in ACTS.items()
    ]
    table = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join((f"### Ran on {product}", "", f"hotset {commit}, {date}.", "", *table)) + "\n"


def put(page: str, text: str) -> str:
    """The page with this section, in the place of one with the same heading or at its end."""
    heading = re.escape(text.partition("\n")[0])
    earlier = re.compile(rf"^{heading}\n.*?(?=^#|\Z)", re.MULTILINE | re.DOTALL)
    found = earlier.search(page)
    if not found:
        return f"{page.rstrip()}\n\n{text}"
    after = page[found.end() :]
    return page[: found.start()] + text + ("\n" + after if after else "")


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

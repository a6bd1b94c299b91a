"""Stands in for hammerdbcli and plays its failures: `FAKE_HAMMERDB` says which.

It reads what a script sets, as HammerDB does, prints the lines of HammerDB 6.0, and keeps the
same SQLite record. Copied into a folder that HAMMERDB_HOME names, under the program's name.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

PLAY = os.environ.get("FAKE_HAMMERDB", "good")
JOB = "6B019BCC660C03E243536323"
NAMES = {"pg": "PostgreSQL", "mssqls": "MSSQLServer"}


class Record:
    """The tables of hammer.DB that hotset reads."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(Path(os.environ["TMP"]) / "hammer.DB")
        self.database.executescript(
            "CREATE TABLE IF NOT EXISTS JOBMAIN(jobid, jobdict);"
            "CREATE TABLE IF NOT EXISTS JOBOUTPUT(jobid, vu INTEGER, output);"
            "CREATE TABLE IF NOT EXISTS JOBTCOUNT(jobid, counter, metric, timestamp);"
            "CREATE TABLE IF NOT EXISTS JOBTIMING(jobid, vu, procname, calls, avg_ms, p50_ms,"
            " p95_ms, p99_ms, max_ms, summary);"
        )

    def add(self, table: str, *values: object) -> None:
        marks = ",".join("?" * (len(values) + 1))
        self.database.execute(f"INSERT INTO {table} VALUES ({marks})", (JOB, *values))
        self.database.commit()


def say(line: str) -> None:
    print(line + "\r", flush=True)


def user(record: Record, number: int, text: str, *, recorded: bool = True) -> None:
    state = text in ("RUNNING", "FINISHED SUCCESS", "FINISHED FAILED")
    say(f"Vuser {number}:{text}")
    if recorded:
        record.add("JOBOUTPUT", 0 if state else number, f"Vuser {number}:{text}" if state else text)


def counter(record: Record, value: int) -> None:
    say(f"{value} PostgreSQL tpm")
    record.add("JOBTCOUNT", value, "tpm", "2026-11-21 13:21:34")


def print_dict(script: str) -> None:
    """The keys of the dictionary that the test put there, one more or one less if told so."""
    if PLAY == "no-settings":
        sys.exit("can't read tclreadline::version: no such variable")
    sections = json.loads((Path(__file__).parent / "dictionary.json").read_text())
    keys = sections[list(sections)[-1]]
    if PLAY == "new-key":
        keys["pg_new_in_seven"] = "1"
    if PLAY == "old-key":
        keys.pop("pg_timeprofile")
    for name, values in sections.items():
        say(f"{name:10} {{")
        for key, value in values.items():
            say(f" {key:20} = {value}")
        say("}")
    assert "giset commandline sqlite_db TMP" in script


def play_timed(record: Record, script: str) -> None:
    match = re.search(r"^vuset vu (\d+)$", script, re.MULTILINE)
    assert match
    users = int(match[1]) + 1
    for number in range(1, users + 1):
        user(record, number, "RUNNING")
    if PLAY == "hang":
        subprocess.run(["sleep", "1000"], check=False)
    if PLAY == "idle":
        while True:
            counter(record, 12)
            time.sleep(0.1)
    if PLAY == "die":
        sys.exit(0)
    if PLAY == "leak":
        password = os.environ["HOTSET_HAMMERDB_PASSWORD"]
        text = f"Connection to DRIVER=x;UID=sa;PWD={password};ENCRYPT=yes could not be established"
        record.add("JOBOUTPUT", 1, f"Error in Virtual User 1: {text}")
        say(f"Error in Virtual User 1: {text}")
        time.sleep(1000)
    user(record, 1, "Beginning rampup time of 1 minutes")
    counter(record, 36552)
    user(record, 1, "Rampup complete, Taking start Transaction Count.")
    user(record, 1, "Timing test period of 1 in minutes")
    window_s = float(os.environ.get("FAKE_HAMMERDB_WINDOW_S", "0.2"))  # a window with a length
    errors = 2000 if PLAY == "broken-connection" else 3 if PLAY == "some-errors" else 0
    for _ in range(errors):
        user(record, 3, "New Order Procedure Error set RAISEERROR for Details", recorded=False)
    counter(record, 37590)
    ends = time.monotonic() + window_s
    while (left_s := ends - time.monotonic()) > 0:
        time.sleep(min(1.0, left_s))
        counter(record, 37590)
    user(record, 1, "Test complete, Taking end Transaction Count.")
    result = "TEST RESULT : System achieved 16115 NOPM from 37590 PostgreSQL TPM"
    time.sleep(float(os.environ.get("FAKE_HAMMERDB_AFTER_S", "0")))
    for _ in range({"no-result": 0, "two-results": 2}.get(PLAY, 1)):
        user(record, 1, result)
    if PLAY == "record-differs":
        record.database.execute("UPDATE JOBOUTPUT SET output = replace(output, '16115', '16116')")
        record.database.commit()
    finish(record, users)
    for name, calls, mean in (
        ("NEWORD", 40000, 5.0),
        ("PAYMENT", 42000, 4.0),
        ("DELIVERY", 4000, 8.0),
        ("SLEV", 4000, 7.0),
        ("OSTAT", 4000, 3.0),
        ("GETTIMESTAMP", 90000, 0.1),
    ):
        record.add("JOBTIMING", 4, name, calls, mean, mean - 1, mean + 8, mean + 12, 60.0, 1)


def play_power(record: Record, sets: int) -> None:
    user(record, 1, "RUNNING")
    if PLAY == "other-scale":
        user(
            record,
            1,
            "The setting of the scale factor (10) is different from the scale factor of"
            " the existing schema (1), updating the scale factor to 1.",
        )
    count = 21 if PLAY == "short" else 22
    for number in range(1, sets + 1):
        for query in range(count, 0, -1):
            user(record, 1, f"Executing Query {query} ({query} of 22)")
            user(record, 1, f"query {query} completed in {query / 8} seconds")
        user(record, 1, f"Completed {number} query set(s) in 31 seconds")
        returned = 20 if PLAY == "empty-query" else count
        user(record, 1, f'Geometric mean of query times returning rows ({returned}) is "1.02030"')
    finish(record, 1)


def play_build(record: Record, users: int) -> None:
    for number in range(1, users + 1):
        user(record, number, "RUNNING")
    user(record, 1, "CREATING TESTER SCHEMA")
    finish(record, users)


def finish(record: Record, users: int) -> None:
    ends = range(1, users) if PLAY == "missing-user" else range(1, users + 1)
    for number in ends:
        failed = PLAY == "failed-user" and number == users
        user(record, number, "FINISHED FAILED" if failed else "FINISHED SUCCESS")
    if PLAY != "incomplete":
        say("ALL VIRTUAL USERS COMPLETE")
        record.add("JOBOUTPUT", 0, "ALL VIRTUAL USERS COMPLETE")
    (Path(os.environ["TMP"]) / "postgresql.db").write_text("state")


def main() -> None:
    assert sys.argv[1:3] == ["tcl", "auto"]
    script = Path(sys.argv[3]).read_text()
    say("HammerDB CLI v6.0")
    say("Copyright \u00a9 HammerDB Ltd hosted by tpc.org 2019-2026")
    if "librarycheck" in script:
        say("Checking database library for PostgreSQL")
        say("Success ... loaded library Pgtcl for PostgreSQL")
        say("Checking database library for MSSQLServer")
        say("Error: failed to load tdbc::odbc - can't find package tdbc::odbc 1.1.1")
        return
    if "print dict" in script:
        print_dict(script)
        return
    record = Record()
    if not record.database.execute("SELECT count(*) FROM JOBMAIN").fetchone()[0]:
        record.add("JOBMAIN", "connection {}")
    if "buildschema" in script:
        loaders = re.search(r"_num_(?:vu|tpch_threads) \{(\d+)\}", script)
        assert loaders
        play_build(record, 1 if loaders[1] == "1" else int(loaders[1]) + 1)
    elif "dbset bm TPC-C" in script:
        play_timed(record, script)
    else:
        sets = re.search(r"_total_querysets \{(\d+)\}", script)
        assert sets
        play_power(record, int(sets[1]))
    say(f"JOBID=Benchmark Run jobid={JOB}")


main()

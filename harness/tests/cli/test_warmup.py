"""``hotset warmup``: what is refused, and how; on a machine without any accelerated disk."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hotset.block.extents import Run
from hotset.core.record import document_of
from hotset.core.units import Blocks, Bytes
from hotset.tier.base import Warmup
from hotset.tier.pins import Preferences, Share
from hotset.warmup import plan_store, text
from hotset.warmup.division import Kept
from hotset.warmup.plan import Plan, Planned, Row
from hotset.warmup.plan_store import SavedPlan
from hotset.warmup.text import WarmupPlan
from tests.cli_server import CommandLine

SAVED = SavedPlan(
    "20261121-070000-pg",
    "2026-11-21T07:00:00+00:00",
    "ssh://db1",
    "pg",
    "/dev/origin",
    ("/srv/pg/base", "heat"),
    Bytes(65536),
    (Run(Blocks(3), Blocks(100)),),
    "auto",
    50,
    0.9,
    Bytes(50_000_000),
    Bytes(0),
    "interrupted",
    "the link was lost",
)


def test_a_plan_is_saved_as_it_is() -> None:
    plan_store.save(SAVED)
    assert plan_store.find(SAVED.id) == plan_store.find("last") == SAVED
    assert plan_store.every() == [SAVED]


DONE = Warmup("insert", *(Bytes(2**20), 1.0, 2.0, 100.0), sampled_blocks=0, differing_blocks=0)


@pytest.mark.parametrize(
    ("left_out", "row", "figures", "share"),
    [
        (Bytes(0), "100 % of 6.2 MiB", {"cached": "100 %"}, 1),
        # Once this was "100.0 % of 6.2 MiB" for the half that had room.
        (
            Bytes(100 * 65536),
            "50.0 % of 12.5 MiB; 6.2 MiB did not fit",
            {"cached": "50.0 %", "did not fit": "6.2 MiB"},
            0.5,
        ),
    ],
)
def test_what_did_not_fit_counts_as_not_cached(
    left_out: Bytes, row: str, figures: dict[str, str], share: float
) -> None:
    warmed = text.WarmupResult.from_outcome(replace(SAVED, left_out=left_out), DONE, Blocks(100))
    assert warmed.to_text().splitlines()[-1].endswith(row)
    assert warmed.figures() == {**figures, "fetched at": "1 MB/s"}
    document = warmed.document()
    assert (document["cached_share"], document["left_out_bytes"]) == (share, left_out)


STOCK, BASE, LOG = "table:stock", "/srv/base", "/srv/log"
BEFORE = Preferences((STOCK,), (BASE,), (Share(LOG, "30%", "100%"),))
KEPT = {
    STOCK: Kept(Bytes(40 * 2**20), Bytes(30 * 2**20), None),
    LOG: Kept(Bytes(2**20), Bytes(0), Bytes(2**20)),
}


@pytest.mark.parametrize(
    ("target", "after", "kept", "said"),
    [
        (STOCK, BEFORE, KEPT, "40 MiB of table:stock pinned, 30 MiB of it cached now"),
        (STOCK, BEFORE, None, "table:stock pinned"),
        (BASE, BEFORE, KEPT, "/srv/base excluded; how much of it is cached is not known"),
        (
            LOG,
            BEFORE,
            KEPT,
            "1 MiB of /srv/log shared: guaranteed 30% of the cache, limited to 100%, 0 B of it"
            " cached now",
        ),
        (STOCK, Preferences(), KEPT, "table:stock is no longer pinned"),
        (LOG, Preferences(), KEPT, "/srv/log is no longer shared"),
        ("/a", BEFORE, KEPT, "/a was neither pinned, excluded nor shared: nothing changed"),
    ],
)
def test_what_is_preferred_says_what_was_done(
    target: str, after: Preferences, kept: dict[str, Kept] | None, said: str
) -> None:
    assert text.describe_preference(target, BEFORE, after, kept) == said


def test_two_plans_of_one_second_have_different_names() -> None:
    now = datetime(2026, 11, 21, 7, tzinfo=UTC)
    assert plan_store.new_id("pg", now) == SAVED.id
    plan_store.save(SAVED)
    assert plan_store.new_id("pg", now) == f"{SAVED.id}-1"


def test_saved_plans_are_listed(hotset: CommandLine) -> None:
    assert hotset("warmup", "plans").out == "no saved plans\n"
    plan_store.save(SAVED)
    table = hotset("warmup", "plans").out
    assert (
        "20261121-070000-pg  interrupted: 6.2 MiB of /srv/pg/base heat on pg (ssh://db1)" in table
    )
    assert "the link was lost" in table
    (row,) = json.loads(hotset("warmup", "plans", "--format", "json").out)["jobs"]
    assert (row["job"], row["bytes"]) == (SAVED.id, 6_553_600)
    (line,) = csv.DictReader(io.StringIO(hotset("warmup", "plans", "-f", "csv").out))
    assert line["state"] == "interrupted"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run"], "give targets, or a plan to resume"),
        (["run", "/a", "--resume", "last"], "give targets, or a plan to resume"),
        (["run", "--resume", "nope"], "there is no saved plan 'nope'; the latest: none"),
        (["run", "/a", "--rate", "fast"], "'fast' is not a size"),
        (["run", "/a", "--rate", "0MB/s"], "a rate must be more than 0"),
        (["run", "/a", "--share", "2"], "--share"),
        (["plan", "srv/pg"], "'srv/pg': write a full path"),
        (["plan", "/a", "--mount-point", "srv"], "'srv' is not a full path"),
        (["plan", "/a", "--machine", "db1"], "--machine: 'db1' is not a machine"),
        (["plan", "/a"], "no disk is accelerated on this machine (local)"),
        (["pin", "orders"], "'orders': write"),
        (["snapshot"], "--output"),
        (["schedule", "add", "/a"], "choose a time (at), on_boot or on_shutdown"),
        (["schedule", "add", "/a", "--at", "noon"], "--at: 'noon' is not a time"),
        (
            ["schedule", "add", "table:x", "--at", "07:00"],
            "server knows where table:x is",
        ),
        (["schedule", "remove", "pg-timed"], "there is no schedule 'pg-timed'"),
    ],
)
def test_bad_input_is_one_clear_line(hotset: CommandLine, argv: list[str], words: str) -> None:
    done = hotset("warmup", *argv)
    assert done.code == 2, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert words in " ".join(done.err.replace("│", " ").split())


def test_a_password_in_the_dsn_is_refused_and_not_echoed(hotset: CommandLine) -> None:
    done = hotset(
        "warmup",
        "schedule",
        "add",
        "table:x",
        "--at",
        "07:00",
        "--dsn",
        "postgresql://me:geheim@db/x",
    )
    assert done.code == 2
    assert "--password-file" in done.err
    assert "geheim" not in done.err + done.out


def planned() -> WarmupPlan:
    mib = 16
    rows = (
        Row("table:a", True, 3, Blocks(40 * mib), Blocks(40 * mib), Blocks(10 * mib), True),
        Row("/srv/base", False, 1200, Blocks(100 * mib), Blocks(60 * mib), Blocks(0), True),
    )
    runs, missing = [Run(Blocks(0), Blocks(100 * mib))], [Run(Blocks(0), Blocks(90 * mib))]
    plan = Plan(rows, runs, missing, Bytes(65536), Blocks(100 * mib))
    return WarmupPlan.from_plan(Planned(plan, 104.8576, ["a note"]))


TABLE = """\
target               extents     size     fits  cached already  to fetch  left out  expected
1. table:a (pinned)        3   40 MiB   40 MiB          10 MiB    30 MiB       0 B     0.3 s
2. /srv/base           1,200  100 MiB   60 MiB             0 B    60 MiB    40 MiB     0.6 s
total                  1,203  140 MiB  100 MiB          10 MiB    90 MiB    40 MiB     0.9 s

room for 100 MiB in blocks of 64 KiB; expected seconds are bytes to fetch over the origin's \
sequential rate, 105 MB/s"""


def test_a_plan_as_a_table() -> None:
    assert planned().to_text() == TABLE


def test_a_plan_for_programs() -> None:
    found = document_of(planned())
    assert found["schema_version"] == 1
    assert (found["to_fetch"], found["expected_s"]) == (90 * 2**20, 0.9)
    assert [row["left_out"] for row in found["targets"]] == [0, 40 * 2**20]
    assert found["notes"] == ["a note"]
    lines = list(csv.DictReader(io.StringIO(planned().csv())))
    assert [line["order"] for line in lines] == ["1", "2"]
    assert lines[0]["pinned"] == "true"

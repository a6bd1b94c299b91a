"""`hotset sql suggest` on a server that counts its statements, and a run of what it wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hotset.databases.postgres.client import PostgresDatabase
from tests.cli_server import CommandLine, Done
from tests.postgres_cluster import PASSWORD, Cluster, own_cluster

pytestmark = pytest.mark.database

SCHEMA = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE item (id integer PRIMARY KEY, kind text NOT NULL, price numeric(10, 2) NOT NULL,
                   added date NOT NULL);
INSERT INTO item SELECT n, CASE WHEN n % 4 = 0 THEN 'it''s :rare' ELSE 'common' END, n / 7.0,
                        date '2020-01-01' + n FROM generate_series(1, 2000) n;
CREATE TABLE "Sale" (item integer NOT NULL, note text, at timestamptz NOT NULL);
INSERT INTO "Sale" SELECT CASE WHEN n % 2 = 0 THEN 7 ELSE n END, 'x', now()
  FROM generate_series(1, 2000) n;
ANALYZE;
SELECT pg_stat_statements_reset();
"""
WORK = (
    "SELECT price FROM item WHERE id = {}",
    "SELECT count(*) FROM item i JOIN \"Sale\" s ON s.item = i.id WHERE i.kind = 'common'"
    " AND s.item = {} LIMIT 5",
    "UPDATE item SET price = 5.5 WHERE added > date '2024-01-01' AND id = {}",
    "INSERT INTO \"Sale\" (at, item, note) VALUES (now(), {}, 'y')",
    "SELECT item FROM \"Sale\" WHERE at > now() - interval '{} day'",
    # It has to take long enough to be told of, on a busy computer as well.
    "SELECT count(*) FROM item, generate_series(1, 10) WHERE json '{}' IS NOT NULL",
)
LAST = ("select_sale", "update_item")


@pytest.fixture(scope="module")
def counting() -> Iterator[Cluster]:
    """A server of its own: the module is loaded at a server's start."""
    with own_cluster("shared_preload_libraries = 'pg_stat_statements'\n") as server:
        yield server


@pytest.fixture
def shop(counting: Cluster) -> Iterator[PostgresDatabase]:
    """What users asked of it lies behind it."""
    with counting.fresh("shop") as database:
        with closing(database.session()) as session:
            for statement in SCHEMA.split(";\n"):
                session.script(statement)
            for number, statement in enumerate(WORK, 1):
                for repeat in range(10 * number):
                    session.script(statement.format(repeat + 1))
        yield database


def sql(hotset: CommandLine, database: PostgresDatabase, *words: str) -> Done:
    dsn = f"host={database.host} port={database.port} user={database.user} dbname=shop"
    return hotset("sql", *words, env={"HOTSET_DSN": dsn, "HOTSET_PASSWORD": PASSWORD})


def test_scripts_are_suggested_and_run(
    hotset: CommandLine, shop: PostgresDatabase, tmp_path: Path
) -> None:
    folder = tmp_path / "scripts"
    done = sql(hotset, shop, "suggest", str(folder), "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    names = sorted(one["file"][3:] for one in found["scripts"])
    assert names == [f"{one}.sql" for one in ("insert_sale", *["select_item"] * 2, *LAST)]
    texts = [(folder / one["file"]).read_text() for one in found["scripts"]]
    assert [one["text"] for one in found["scripts"]] == texts
    whole = "\n".join(texts)
    assert "p1: item.id, 1 to 2000 by its statistics" in whole
    assert "item.kind, 2 values of its statistics" in whole
    assert "'common'" in whole
    assert "then 7 else random(1, " in whole, "the most common item, by its share"
    weights = [one["weight"] for one in found["scripts"]]
    calls = [one["calls"] for one in found["scripts"]]
    assert sorted(calls) == [10, 20, 30, 40, 50]
    assert max(weights) / min(weights) == pytest.approx(5, rel=0.1)
    left = next(one for one in found["left_out"] if "json" in one["statement"])
    assert "syntax error" in left["reason"]
    shares = [one["time_share"] for one in (*found["scripts"], *found["left_out"])]
    assert sum(shares) == pytest.approx(1, abs=0.001), "nothing is left out in silence"
    assert any("one transaction" in one for one in found["limits"])

    words = found["command"].split()
    assert words[:3] == ["hotset", "sql", "run"]
    run = sql(hotset, shop, *words[2:], "--users=2", "--rampup=0", "--duration=2", "--format=json")
    assert run.code == 0, run.err
    result = json.loads(run.out)["result"]
    assert result["failed"] == 0
    assert all(kind["committed"] for kind in result["kinds"].values())

    again = sql(hotset, shop, "suggest", str(folder))
    assert again.code == 2
    assert "is there already: name a new folder" in again.err


MORE = """
CREATE SCHEMA ext;
CREATE EXTENSION pg_stat_statements SCHEMA ext;
CREATE TABLE app_user (id integer PRIMARY KEY, email text NOT NULL, pg_rating integer NOT NULL,
                       tags text[] NOT NULL);
INSERT INTO app_user SELECT n, 'u' || n, n % 7, ARRAY['a', 'b' || n % 3]
  FROM generate_series(1, 2000) n;
ANALYZE
"""
ASKED = {
    "leading comment": "-- name: GetUser :one\nSELECT email FROM app_user WHERE id = 7",
    "a column called pg_": "SELECT id FROM app_user WHERE pg_rating = 3 LIMIT 1",
    "in parentheses": "(SELECT id FROM app_user WHERE id = 3) UNION (SELECT 4)",
    "merge": "MERGE INTO app_user u USING app_user s ON s.id = u.id AND u.id = 5"
    " WHEN MATCHED THEN UPDATE SET email = 'x'",
    "an advisory lock": "SELECT email, pg_advisory_xact_lock(8) FROM app_user WHERE id = 9",
    "a list": "SELECT email FROM app_user WHERE id IN (1, 2, 3)",
    "tags": "SELECT id FROM app_user WHERE tags = ARRAY['a', 'b1'] LIMIT 1",
}
SQUASHED = "SELECT id FROM app_user WHERE email IN ($1 /*, ... */)"


def test_what_users_and_programs_really_send(
    hotset: CommandLine, counting: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "scripts"
    with counting.fresh("shop") as database:
        with closing(database.session()) as session:
            session.script(MORE)
            for text in ASKED.values():
                for _ in range(5):
                    session.script(text)
            session.script(
                "PREPARE by_list AS SELECT email FROM app_user WHERE id = ANY ($1::int[])"
            )
            session.script(f"PREPARE as_18_writes_lists AS {SQUASHED}")
            for _ in range(5):
                session.query("EXECUTE by_list(ARRAY[1, 2])")
                session.query("EXECUTE as_18_writes_lists('u5')")
            # What takes less than a thousandth of the time is told as a number alone.
            session.query("SELECT count(*) FROM pg_class, pg_attribute")
        done = sql(hotset, database, "suggest", str(folder), "--format", "json", "--top", "50")
        assert done.code == 0, done.err
        found = json.loads(done.out)
        texts = "\n".join(one["text"] for one in found["scripts"])
        for part in ("email FROM app_user WHERE id = :p1", "pg_rating =", "UNION", "MERGE"):
            assert part in texts, (part, found["left_out"])
        assert "pg_advisory_xact_lock" in texts
        # As PostgreSQL writes it up to 17, or from 18 on.
        assert "id IN (:p1, :p2, :p3)" in texts or "id IN (:p1 /*, ... */)" in texts
        (squashed,) = (one for one in found["scripts"] if "email IN (" in one["text"])
        assert "p1: a list, of which one value is drawn" in squashed["text"]
        assert "p1: app_user.email, " in squashed["text"]
        assert "ANY (ARRAY[:p1]::integer[]" in texts, found["left_out"]
        assert "::text[]" in texts
        assert not any(one["guessed"] for one in found["scripts"] if "IN (" in one["text"])
        reasons = {one["statement"]: one["reason"] for one in found["left_out"]}
        catalogs = next(reason for text, reason in reasons.items() if "pg_class" in text)
        assert "what the server keeps about itself" in catalogs
        words = found["command"].split()[2:]
        short = ("--users=2", "--rampup=0", "--duration=2", "--format=json")
        run = sql(hotset, database, *words, *short)
        assert run.code == 0, run.err
        assert json.loads(run.out)["result"]["failed"] == 0


def test_what_the_server_lacks_is_told(
    hotset: CommandLine, cluster: Cluster, tmp_path: Path
) -> None:
    with cluster.fresh("shop") as database:
        done = sql(hotset, database, "suggest", str(tmp_path / "scripts"))
    assert done.code == 3
    assert "CREATE EXTENSION pg_stat_statements" in done.err
    assert not (tmp_path / "scripts").exists()


def test_hidden_statements_are_told_with_the_grant(
    hotset: CommandLine, shop: PostgresDatabase, tmp_path: Path
) -> None:
    with closing(shop.session()) as session:
        session.script(f"CREATE ROLE blind LOGIN PASSWORD '{PASSWORD}'")
    try:
        dsn = f"host={shop.host} port={shop.port} user=blind dbname=shop"
        env = {"HOTSET_DSN": dsn, "HOTSET_PASSWORD": PASSWORD}
        done = hotset("sql", "suggest", str(tmp_path / "scripts"), env=env)
        assert done.code == 2
        assert "GRANT pg_read_all_stats TO blind" in done.err
    finally:
        with closing(shop.session()) as session:
            session.script("DROP ROLE blind")

"""Scripts for SQL Server: what is read, and where it says that something is wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.bench.sql.script import Draw, ScriptError, Statement, read, require_set

CHECKOUT = r"""
-- one order; :not a variable
\set item random(1, :items)
BEGIN TRANSACTION;
SELECT price, 'a:b' /* :c /* nested */ */ FROM item
 WHERE id = :item;
UPDATE item SET stock = stock - 1 WHERE id = :item AND "odd:name" = geometry::Null;
COMMIT
"""


def test_a_script_is_read_command_by_command() -> None:
    script = read("checkout.sql", CHECKOUT)
    draw, begin, select, update, commit = script.commands
    assert draw == Draw(3, "item", 1, "items")
    assert begin == Statement(4, ("BEGIN TRANSACTION",), ())
    assert isinstance(select, Statement)
    assert (select.line, select.names) == (5, ("item",))
    assert select.parts[0].startswith("SELECT price, 'a:b'")
    assert isinstance(update, Statement)
    assert update.names == ("item",)
    assert commit == Statement(8, ("COMMIT",), ())
    assert script.used == {"items": 3, "item": 6}
    assert script.sets() == {"item"}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "there is no statement in it"),
        ("\\set x random(1, 2)\n", 1, "there is no statement in it"),
        ("SELECT 1;\n\\if :x", 2, "\\if :x: on SQL Server a script has \\set NAME random(A, B)"),
        ("SELECT 1 AS a \\gset", 1, "\\gset: on SQL Server"),
        ("\n\\sleep 5 ms", 2, "write it in T-SQL"),
        ("SELECT 1;\n\\set x 5", 2, "\\set x 5: on SQL Server a script has"),
        ("\\set x random_zipfian(1, 9, 1.2)", 1, "\\set x random_zipfian(1, 9, 1.2): on SQL"),
        ("\\set x random(1, :n / 2)", 1, "of numbers or :names, and no more"),
        ("\\set x hash(:y)", 1, "\\set x hash(:y): on SQL Server"),
        ("\\set", 1, "\\set: on SQL Server"),
        ("SELECT 1;\nSELECT\n 'text", 3, "' has no end"),
        ("SELECT 1; /* never", 1, "a comment has no end"),
        ("SELECT\n ':n days', :n", 2, ":n stands in a string, where it stays as it is"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ScriptError, match=re.escape(said)) as error:
        read("a.sql", text)
    assert str(error.value).startswith(f"a.sql:{line}: ")


def test_a_variable_that_nothing_sets_is_told() -> None:
    first = read("a.sql", "\\set n random(1, :most)\nSELECT :n, :m, :client_id;")
    scripts = [first, read("b.sql", "SELECT :n;")]
    with pytest.raises(ScriptError, match=r"^a\.sql:1: nothing sets :most"):
        require_set(scripts, ["m"])
    require_set(scripts, ["m", "most"])


@given(st.text(alphabet="SELECT:a\\;'\"-/*\n (1)setrandom,", max_size=60))
def test_any_text_is_a_script_or_is_refused(text: str) -> None:
    try:
        script = read("a.sql", text)
    except ScriptError:
        return
    assert all(len(one.parts) == len(one.names) + 1 for one in script.statements())


def test_statements_keep_their_text() -> None:
    text = "SELECT 'it''s; :x', a.[;:b], :v\n FROM \"t;\" -- ; :y\n WHERE c = '%'"
    (statement,) = read("a.sql", text + ";").statements()
    assert ":v".join(statement.parts) == text

"""Scripts: what is read, and where it says that something is wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.bench.sql import users
from hotset.bench.sql.script import Assign, Choice, ScriptError, Sleep, Statement, read, require_set
from hotset.core.rights import Names
from hotset.operations.remote import _without_weight

CHECKOUT = r"""
-- one order; :not a variable
\set item random(1, \
        :items)
BEGIN;
SELECT price::numeric AS price, 'a:b' /* :c /* nested */ */ FROM item
 WHERE id = :item \gset it_
\if :it_price > 10
    UPDATE item SET stock = stock - 1 WHERE id = :item AND "odd:name" = $$ ; :x $$;
\elif :it_price > 5
    \sleep 5 ms
\else
    \sleep :item us
\endif
COMMIT
"""


def test_a_script_is_read_as_pgbench_reads_it() -> None:
    script = read("checkout.sql", CHECKOUT)
    setting, begin, select, choice, commit = script.block
    assert isinstance(setting, Assign)
    assert (setting.name, setting.line) == ("item", 3)
    assert begin == Statement(5, ("BEGIN",), ())
    assert isinstance(select, Statement)
    assert (select.names, select.prefix, select.one_row) == (("item",), "it_", True)
    assert select.parts[0].startswith("SELECT price::numeric AS price, 'a:b'")
    assert isinstance(choice, Choice)
    assert [line for line, _, _ in choice.branches] == [8, 10, 12]
    update, pause, last = (inner[0] for _, _, inner in choice.branches)
    assert isinstance(update, Statement)
    assert update.names == ("item",)
    assert [isinstance(one, Sleep) and one.unit_s for one in (pause, last)] == [1e-3, 1e-6]
    assert commit == Statement(15, ("COMMIT",), ())
    assert script.used == {"items": 3, "item": 7, "it_price": 8}
    assert (script.sets, script.prefixes) == ({"item"}, {"it_"})


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "there is no statement in it"),
        ("\\set x 1\n", 1, "there is no statement in it"),
        ("SELECT 1;\n\\shell ls", 2, "\\shell is not supported: no programs are run"),
        ("SELECT 1;\n\\startpipeline", 2, "\\startpipeline is not supported"),
        ("SELECT 1\\; SELECT 2;", 1, "\\; is not supported: statements are sent one by one"),
        ("\n\\nosuch", 2, "there is no command \\nosuch; there are \\set, \\sleep"),
        ("\\set x", 1, "\\set takes a name and an expression"),
        ("SELECT 1;\n\\set x 1 +", 2, "it ends too early"),
        ("\\set x nosuch(1)", 1, "there is no function nosuch"),
        ("\\set x 99999999999999999999", 1, "does not fit a bigint"),
        ("\\sleep soon", 1, "\\sleep takes a number or a variable"),
        ("SELECT 1;\n\\if 1\nSELECT 2;", 2, "\\if without \\endif"),
        ("SELECT 1;\n\\endif", 2, "\\endif without \\if"),
        ("\\if 1\n\\else\n\\else\n", 3, "\\else behind \\else"),
        ("SELECT 1;\n\\gset", 2, "\\gset ends a statement, and here is none"),
        ("SELECT 1 \\gset 1x", 1, "\\gset takes a prefix"),
        ("SELECT 1;\nSELECT\n 'text", 3, "' has no end"),
        ("SELECT 1; /* never", 1, "a comment has no end"),
        ("SELECT $a$ never $$", 1, "$a$ has no end"),
        ("\\set n 5\nSELECT\n ':n days'", 3, ":n stands in a string, where it stays as it is"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ScriptError, match=re.escape(said)) as error:
        read("a.sql", text)
    assert str(error.value).startswith(f"a.sql:{line}: ")


def test_a_variable_that_nothing_sets_is_told() -> None:
    scripts = [read("a.sql", "\\set n 1\nSELECT :n, :m, :client_id;"), read("b.sql", "SELECT :n;")]
    with pytest.raises(ScriptError, match=r"^a\.sql:2: nothing sets :m"):
        require_set(scripts, [])
    require_set(scripts, ["m"])
    require_set([*scripts, read("c.sql", "SELECT 1 AS m \\gset")], [])
    with pytest.raises(ScriptError, match="nothing sets :m"):
        require_set([*scripts, read("c.sql", "SELECT 1 AS m \\gset it_")], [])


@given(st.text(alphabet="SELECT:a\\;'\"$-/*\n (1)ifendgsetlp", max_size=60))
def test_any_text_is_a_script_or_is_refused(text: str) -> None:
    try:
        script = read("a.sql", text)
    except ScriptError:
        return
    assert all(len(one.parts) == len(one.names) + 1 for one in script.statements())


def test_statements_keep_their_text() -> None:
    text = "SELECT E'it\\'s; :x', a[1], b::int, :v\n FROM \"t;\" -- ; :y\n WHERE c = '%'"
    (statement,) = read("a.sql", text + ";").statements()
    assert ":v".join(statement.parts) == text


def test_scripts_have_weights_and_names_of_their_own(tmp_path: object) -> None:
    assert users.split("a@b/c.sql@7") == ("a@b/c.sql", 7)
    assert list(_without_weight("/srv/a.sql@7")) == ["/srv/a.sql"]
    assert Names.SCRIPT
    with pytest.raises(ValueError, match="the weight behind @"):
        users.split("a.sql@0")
    with pytest.raises(ValueError, match="No such file"):
        users.source(f"{tmp_path}/none.sql")
    with pytest.raises(ValueError, match="give NAME=VALUE"):
        users.parse_definitions(["scale"])

"""Expressions of scripts: beside pgbench's own, and what random numbers look like."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.bench.sql.expressions import ExpressionError, Scope, parse
from hotset.bench.sql.functions import Plain, ValueProblem
from tests.postgres_cluster import Cluster

EXPRESSIONS = (
    "1 + 2 * 3 - 4",
    "-7 / 2",
    "-7 % 3",
    "7.0 / 2",
    "1 / 0.0",
    "2 # 1",
    "5 & 3 | 8 << 2",
    "~5 + 1",
    "- - 3",
    "not true or true and false",
    "1 < 2 and 2 >= 2.0",
    "3 <> 3 or 4 != 5",
    "null is null",
    "(1 = null) is not true",
    "5 notnull",
    "null isnull",
    "null and false",
    "null or true",
    "case when 1 > 2 then 1 when 2 > 1 then 2.5 else 3 end",
    "case when null then 1 end",
    "abs(-5) + abs(-1.5)",
    "least(3, 1, 2)",
    "greatest(1, 2.5)",
    "mod(-9, 4)",
    "int(2.5) + int(3.5)",
    "double(7) / 2",
    "pow(2, 10)",
    "power(0, -1)",
    "sqrt(-1)",
    "ln(0)",
    "exp(1)",
    "pi()",
    "hash(5)",
    "hash_fnv1a(5, 7)",
    "hash_murmur2(-123456789, 42)",
    "9223372036854775807",
    "-9223372036854775808",
    "1e3 + .5",
    ":n * 2 - :N",
)


def value_of(text: str, **variables: int) -> Plain:
    evaluate, _ = parse(text)
    return evaluate(Scope({"default_seed": 99, **variables}, Random(1)))


def shown(value: Plain) -> str:
    """As pgbench's debug() shows it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean " + str(value).lower()
    if isinstance(value, int):
        return f"int {value}"
    return f"double {value:.15g}"


def _lower(said: str) -> str:
    """pgbench shows what is no number by C's library or by its own."""
    return said.replace("-nan", "nan").replace("NaN", "nan").replace("Infinity", "inf")


@pytest.mark.database
def test_values_are_pgbenchs(cluster: Cluster, tmp_path: Path) -> None:
    program = cluster.binaries / "pgbench"
    if not program.exists():
        pytest.skip("pgbench is not installed")
    script = tmp_path / "all.sql"
    lines = ["\\set n 21", "\\set N 2"]
    lines += [f"\\set x{i} debug({text})" for i, text in enumerate(EXPRESSIONS)]
    script.write_text("\n".join(lines) + "\n")
    found = subprocess.run(
        [
            *(str(program), "-n", "-t", "1", "-D", "default_seed=99", "-f", str(script)),
            f"host=127.0.0.1 port={cluster.port} user=tester dbname=postgres",
        ],
        env={"PGPASSWORD": cluster.database().password, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = re.findall(r"debug\(script=0,command=\d+\): (.*)", found.stderr)
    pairs = dict(zip(EXPRESSIONS, said, strict=True))
    ours = {text: shown(value_of(text, n=21, N=2)) for text in EXPRESSIONS}
    assert ours == {text: _lower(one) for text, one in pairs.items()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "ends too early"),
        ("1 +", "ends too early"),
        ("1 2", "nothing belongs behind"),
        ("1 < 2 < 3", "brackets"),
        ("(1", "')' is missing"),
        ("nosuch(1)", "no function nosuch; there are abs"),
        ("random(1)", "takes 2 arguments, not 1"),
        ("'text'", "no part of an expression"),
        ("case 1 end", "CASE needs WHEN"),
        ("1 is 5", "IS takes"),
    ],
)
def test_what_is_no_expression_is_told(text: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(said)):
        parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "does not fit a bigint"),
        ("random(5, 1)", "from 5 to 1 there is no number"),
        ("random_zipfian(1, 9, 1)", "1.001 to 1000"),
        ("not 5", "5 is no boolean"),
        ("true + 1", "a boolean is no number"),
        (":text + 1", "'blue', not a number"),
        (":unset", "not set"),
    ],
)
def test_what_has_no_value_is_told(text: str, said: str) -> None:
    evaluate, _ = parse(text)
    with pytest.raises((ExpressionError, ValueProblem), match=re.escape(said)):
        evaluate(Scope({"text": "blue"}, Random(1)))


@given(st.text(alphabet="0123456789.+-*/%()<>=&|#~:,_ aendorut", max_size=30))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    try:
        evaluate, _ = parse(text)
        evaluate(Scope({}, Random(1)))
    except (ExpressionError, ValueProblem):
        pass


def draws(text: str, count: int = 20_000) -> Counter[Plain]:
    evaluate, _ = parse(text)
    scope = Scope({"default_seed": 5}, Random(7))
    return Counter(evaluate(scope) for _ in range(count))


def test_random_numbers_are_distributed_as_pgbenchs() -> None:
    """Expected shares by the formulas in pgbench's manual."""
    flat = draws("random(1, 4)")
    assert all(4_600 < flat[number] < 5_400 for number in range(1, 5))
    steep = draws("random_zipfian(1, 100, 1.5)")
    assert steep[1] / steep[2] == pytest.approx(2**1.5, rel=0.1)
    falling = draws("random_exponential(1, 10, 5)")
    assert falling[1] / 20_000 == pytest.approx(0.396, abs=0.02)
    bell = draws("random_gaussian(1, 100, 3)")
    assert sum(bell[number] for number in range(34, 68)) / 20_000 == pytest.approx(0.69, abs=0.03)
    assert {min(bell), max(bell)} <= set(range(1, 101))


@given(st.integers(1, 300), st.integers(-5, 5))
def test_permute_gives_each_number_once(size: int, seed: int) -> None:
    found = {value_of(f"permute({number}, {size}, {seed})") for number in range(size)}
    assert found == set(range(size))

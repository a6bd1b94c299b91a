"""The compiled driver draws what Python draws: equal seeds heat the same rows on every engine."""

import json
import subprocess
from decimal import Decimal
from typing import Any

import pytest

from hotset.core.sql import Libpq, Value
from hotset.load.arrivals import Arrivals
from hotset.load.processes import WorkerDied
from hotset.tpcc.data.nurand import Constants
from hotset.tpcc.native import NativeCrew, _message, program, settings
from hotset.tpcc.record import DriverMissing, RunOptions
from hotset.tpcc.transactions import Terminal

NOWHERE = Libpq("/nowhere/libpq.so", {"password": "never-to-be-seen"}, "", "HS241", {}, {}, ())


def options(**changed: Any) -> RunOptions:  # noqa: ANN401
    given = {"users": 3, "warehouses": 7, "rampup_s": 0, "duration_s": 1, **changed}
    return RunOptions(**given)


def as_json(value: Value) -> object:
    if isinstance(value, Decimal):
        return int(value * 100)
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"seed": 0},
        {"seed": 20261121, "think_time": True},
        {"warehouses": 1, "users": 2},
        {"all_warehouses": False, "users": 12},
        {"items": "uniform", "seed": 9},
    ],
    ids=str,
)
def test_inputs_are_the_same_stream_in_both(changed: dict[str, Any]) -> None:
    run, count = options(**changed), 600
    constants = Constants.for_run(run.seed)
    said = subprocess.run(
        [program(), "inputs", str(count)],
        input=json.dumps(settings(NOWHERE, run, constants)).encode(),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.splitlines()
    assert len(said) == run.users * count
    for user in range(run.users):
        terminal = Terminal(
            user, run.warehouses, run.seed, constants, run.all_warehouses, run.items
        )
        for line in said[user * count : (user + 1) * count]:
            kind, inputs = terminal.next()
            compiled_kind, compiled_inputs, think_s = json.loads(line)
            assert (compiled_kind, compiled_inputs) == (kind, [as_json(value) for value in inputs])
            if run.think_time:
                assert think_s == pytest.approx(terminal.think_s(kind), rel=1e-12)


@pytest.mark.parametrize("users", [3, 64])
def test_transactions_are_due_at_the_same_times_in_both(users: int) -> None:
    run, count = options(users=users, rate_per_s=250.0, seed=7), 500
    given = settings(NOWHERE, run, Constants.for_run(run.seed))
    said = subprocess.run(
        [program(), "arrivals", str(count)],
        input=json.dumps(given).encode(),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.splitlines()
    assert len(said) == given["threads"]
    for thread, line in enumerate(said):
        share = len(range(thread, users, len(said))) / users
        arrivals = Arrivals(run.seed, thread, run.rate_per_s * share)
        arrivals.begin(0.0, float("inf"))
        drawn = [arrivals.take(0.0, lambda _: None) for _ in range(count)]
        assert json.loads(line) == pytest.approx(drawn, rel=1e-12)


def test_what_cannot_start_says_why_and_no_secret() -> None:
    with (
        NativeCrew(settings(NOWHERE, options(), Constants.for_run(1))) as crew,
        pytest.raises(WorkerDied, match=r"/nowhere/libpq\.so cannot be loaded") as death,
    ):
        list(crew.listen(5))
    assert "never-to-be-seen" not in str(death.value)


def test_options_that_are_broken_are_not_quoted() -> None:
    done = subprocess.run(
        [program(), "run"],
        input=b'{"connection": {"password": "never"}}\n',
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"Data error at column" in done.stderr
    assert b"never" not in done.stderr


def test_a_driver_of_another_version_is_called_that() -> None:
    with pytest.raises(DriverMissing, match="another version of hotset: run `make build`"):
        _message(b"S", b'[{"second": 0, "histograms": [], "outcomes": []}]')


def test_a_driver_that_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotset.tpcc.native.PROGRAM", "hotset-nothing")
    monkeypatch.delenv("HOTSET_TPCC_DRIVER", raising=False)
    with pytest.raises(DriverMissing, match="make build"):
        program()

"""Jobs: they outlive whoever started them, tell their state from the disk, and keep no secret."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hotset.core import operation as lock
from hotset.core.clock import wait_until
from hotset.core.errors import RequestError
from hotset.core.paths import data_dir, repository_file
from hotset.databases.postgres.product import PostgresDatabase
from hotset.operations import run, table
from hotset.operations.jobs import store as jobs
from hotset.operations.jobs.events import Event
from hotset.operations.jobs.store import Job, JobConflictError, NoSuchJobError
from tests.cli_server import CommandLine
from tests.silent_server import silent_server
from tests.support import processes

CHECK = "tpcc check"
CLOSED = "host=127.0.0.1 port=1 user=tester dbname=shop"


@pytest.fixture
def waits() -> Iterator[str]:
    """The DSN of a server that never answers; jobs that wait for it are ended afterwards."""
    with silent_server() as dsn:
        yield dsn
    for job in jobs.every():
        if job.running:
            os.killpg(process_of(job), signal.SIGKILL)
            until(lambda job=job: not jobs.find(job.id).running)


def process_of(job: Job) -> int:
    return int((data_dir() / "jobs" / job.id / "process").read_text().split()[0])


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    assert wait_until(holds, seconds), "it did not come true in time"


def ended(job: Job) -> Job:
    until(lambda: not jobs.find(job.id).running)
    return jobs.find(job.id)


def heard(id_: str, after: int = 0) -> list[Event]:
    async def all_of_it() -> list[Event]:
        return [event async for event in jobs.follow(id_, after)]

    return asyncio.run(all_of_it())


def shipped(name: str) -> str:
    """The path of an experiment in the folder of those that come with hotset."""
    return str(repository_file("experiments") / name)


def test_a_job_that_fails_says_why() -> None:
    job = run.start(CHECK, {"dsn": CLOSED, "password": "open-sesame"})
    assert (job.state, job.verb, dict(job.values)) == ("running", "tpcc check", {"dsn": CLOSED})
    events = heard(job.id)
    assert [event.kind for event in events] == ["error", "end"]
    assert events[-1].state == "failed"
    assert "port 1 failed" in events[0].text == events[1].text
    job = jobs.find("last")
    assert (job.state, job.code, jobs.result(job)) == ("failed", 4, None)
    assert job.messages == (events[0].text,)


def test_a_failure_is_told_in_parts_for_callers_that_word_it_themselves() -> None:
    job = ended(run.start(CHECK, {"dsn": CLOSED, "password": "open-sesame"}))
    problem = jobs.problem(job)
    assert problem is not None
    assert "port 1 failed" in problem["message"]
    assert set(problem) == {"type", "message", "field", "remedies"}
    assert job.ended is not None
    assert job.ended >= job.started
    assert job.as_dict()["ended"] == job.ended.isoformat()


def test_how_far_a_step_is_stands_beside_its_figure(waits: str) -> None:
    """As a job's own process says it; a step that has just begun has not been measured."""
    job = run.start(CHECK, {"dsn": waits})
    assert {job.as_dict()[name] for name in ("done", "total", "unit", "eta_s")} == {None}
    said = data_dir() / "jobs" / job.id / "err"
    figure = {"at": 2.0, "figure": "1 of 4", "done": 1, "total": 4, "unit": "files", "eta_s": 6.0}
    with said.open("a") as file:
        file.write(json.dumps(figure) + "\n")
    known = jobs.find(job.id).as_dict()
    assert [known[name] for name in figure if name in known] == [1, 4, "files", 6.0]
    assert known["ended"] is None
    with said.open("a") as file:
        file.write('{"at": 3.0, "task": "the next step"}\n')
    assert jobs.find(job.id).as_dict()["total"] is None


def test_a_job_that_succeeds_leaves_what_it_printed() -> None:
    """A verb that prints lines; the lab of this test's folders is not up."""
    job = ended(run.start("lab down", {}))
    assert (job.state, job.code, job.messages) == ("done", 0, ("nothing was up",))
    assert jobs.result(job) is None
    assert jobs.cause(job) == ""


def test_old_jobs_and_those_beyond_the_most_are_forgotten_but_never_running_ones(
    monkeypatch: pytest.MonkeyPatch, waits: str
) -> None:
    monkeypatch.setattr(run, "PROGRAM", "tests.no_job")
    monkeypatch.setattr(jobs, "KEPT", 3)
    old = ended(run.start("lab down", {}))
    monkeypatch.setattr(run, "PROGRAM", "hotset.operations.child")
    busy = run.start(CHECK, {"dsn": waits})
    monkeypatch.setattr(run, "PROGRAM", "tests.no_job")
    for job in (old, busy):
        os.utime(data_dir() / "jobs" / job.id / "job.json", (0, 0))
    ended(run.start("lab image", {}))
    assert {job.id for job in jobs.every()} & {old.id, busy.id} == {busy.id}
    for _ in range(4):
        newest = ended(run.start("lab image", {}))
    kept = [job.id for job in jobs.every()]
    # Those of one second have no order among them, so it may be among the newest itself.
    assert len(kept) in (3, 4)
    assert {newest.id, busy.id} <= set(kept)
    assert jobs.find(busy.id).running
    assert [job.id for job in jobs.every(2)] == kept[:2]


@pytest.mark.parametrize(
    "name", ["HOTSET_PASSWORD", "PGPASSWORD", "PGSERVICE", "PGSERVICEFILE", "PGSSLKEY"]
)
def test_a_job_has_no_secret_of_who_started_the_server(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "open-sesame")
    monkeypatch.setattr(run, "PROGRAM", "tests.tells_environment")
    told = jobs.result(ended(run.start("lab down", {})))
    assert "open-sesame" not in told["environment"].values()
    assert not Path(told["environment"]["PGPASSFILE"]).exists()
    assert told["folder"] == str(data_dir() / "jobs" / jobs.find("last").id)


def test_its_folder_is_for_its_user_alone() -> None:
    job = ended(run.start(CHECK, {"dsn": CLOSED}))
    folder = data_dir() / "jobs" / job.id
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    jobs.remove(job.id)
    assert not folder.exists()
    with pytest.raises(NoSuchJobError, match=job.id):
        jobs.find(job.id)


def test_events_go_on_after_the_last_that_is_known() -> None:
    job = ended(run.start("experiment plan", {"file": shipped("nope.toml")}))
    with (data_dir() / "jobs" / job.id / "err").open("ab") as file:
        file.write('note: späte Zeile\n{"at": 2.5, "figure": "half"}\nunfini'.encode())
    every = heard(job.id)
    assert [event.kind for event in every] == ["error", "say", "figure", "end"]
    assert (every[1].text, every[2].at, every[2].text) == ("note: späte Zeile", 2.5, "half")
    assert heard(job.id, every[1].id) == every[2:]
    assert jobs.find(job.id).progress == "half"


def test_who_follows_a_job_that_is_removed_hears_no_end() -> None:
    job = ended(run.start(CHECK, {"dsn": CLOSED}))

    async def removed_after_the_first() -> list[str]:
        kinds = []
        async for event in jobs.follow(job.id):
            kinds.append(event.kind)
            if len(kinds) == 1:
                jobs.remove(job.id)
        return kinds

    assert asyncio.run(removed_after_the_first()) == ["error"]


def test_cancel_interrupts(waits: str) -> None:
    job = run.start(CHECK, {"dsn": waits})
    with pytest.raises(JobConflictError, match=f"{job.id} is running"):
        jobs.remove(job.id)
    until(lambda: b"operations.child" in Path(f"/proc/{process_of(job)}/cmdline").read_bytes())
    until(lambda: connected(job))
    jobs.cancel(job.id)
    job = ended(job)
    assert (job.state, job.code) == ("interrupted", 130)
    assert jobs.cancel(job.id) == job


def test_cancel_interrupts_what_has_only_just_been_started(waits: str) -> None:
    job = run.start(CHECK, {"dsn": waits})
    jobs.cancel(job.id)
    job = ended(job)
    assert (job.state, job.code) == ("interrupted", 130)


def connected(job: Job) -> bool:
    """Whether its process holds a socket: signals are taken in good order by then."""
    links = []
    for link in Path(f"/proc/{process_of(job)}/fd").iterdir():
        with suppress(OSError):
            links.append(str(link.readlink()))
    return any(link.startswith("socket:") for link in links)


def test_a_killed_job_is_lost(waits: str) -> None:
    job = run.start(CHECK, {"dsn": waits})
    os.killpg(process_of(job), signal.SIGKILL)
    job = ended(job)
    assert (job.state, job.code) == ("lost", None)
    assert "killed" in jobs.cause(job)
    assert heard(job.id)[-1].state == "lost"


def test_another_process_with_the_same_id_is_not_taken_for_it(waits: str) -> None:
    job = run.start(CHECK, {"dsn": waits})
    os.killpg(process_of(job), signal.SIGKILL)
    job = ended(job)
    file = data_dir() / "jobs" / job.id / "process"
    file.write_text(f"{os.getpid()} {file.read_text().split()[1]}\n")
    assert jobs.find(job.id).state == "lost"
    assert jobs.cancel(job.id).state == "lost"


def test_jobs_that_need_the_same_are_refused(waits: str) -> None:
    first = run.start(CHECK, {"dsn": waits})
    with pytest.raises(JobConflictError, match=f"job {first.id} .*database"):
        run.start("tpch check", {"dsn": waits})
    assert [job.id for job in jobs.every()] == [first.id]
    assert ended(run.start(CHECK, {"dsn": CLOSED})).state == "failed"


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (("warmup run", {"disk": "a"}), ("warmup run", {"disk": "a"}), True),
        (("warmup run", {"disk": "a"}), ("tier flush", {"disk": "a"}), True),
        (("warmup run", {"disk": "a"}), ("warmup run", {"disk": "b"}), False),
        (("warmup run", {"disk": "a"}), ("warmup run", {}), True),
        (("warmup run", {"disk": "a"}), ("warmup run", {"disk": "a", "machine": "vm"}), False),
        (("warmup run", {"disk": "a"}), ("tier destroy", {"disk": "b"}), True),
        (("warmup run", {"disk": "a"}), ("warmup pin", {"disk": "a"}), False),
        (("experiment run", {}), ("demo", {}), True),
        (("experiment run", {}), ("experiment plan", {}), False),
        (("experiment run", {}), ("tpcc run", {"dsn": "x"}), False),
    ],
)
def test_what_a_job_needs_for_itself(
    one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]], conflict: bool
) -> None:
    """A server, a disk or the lab; without a disk's name it may be any."""
    needed = {
        "experiment run": {"file": "x"},
        "experiment plan": {"file": "x"},
        "warmup pin": {"targets": ["/a"]},
    }
    locks = []
    for name, values in (one, other):
        found, given = table.find(name), values
        if "disk" in values and "disk" not in found.fields:
            given = {"flash_name": values["disk"]}
        locks.append(found.lock(found.parse({**needed.get(name, {}), **given})))
    assert lock.conflict(*locks) is conflict


def test_so_many_at_once(waits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "AT_ONCE", 1)
    first = run.start(CHECK, {"dsn": waits})
    with pytest.raises(JobConflictError, match=f"1 jobs are running.*{first.id}"):
        run.start(CHECK, {"dsn": CLOSED})


def test_what_answers_at_once_is_no_job() -> None:
    with pytest.raises(RequestError, match="answers at once"):
        run.start("tier status", {})


@pytest.mark.parametrize("name", ["", "nope", "..", "../jobs", "a/b", "a\0", "x" * 500, ".lock"])
def test_names_of_no_job(name: str) -> None:
    with pytest.raises(NoSuchJobError, match="there is no job"):
        jobs.find(name)


def test_jobs_on_the_command_line(hotset: CommandLine, waits: str) -> None:
    failed = ended(run.start(CHECK, {"dsn": CLOSED}))
    job = run.start(CHECK, {"dsn": waits})
    until(lambda: connected(job))
    here = {"XDG_DATA_HOME": os.environ["XDG_DATA_HOME"]}
    listed = json.loads(hotset("jobs", "list", "--format", "json", env=here).out)["jobs"]
    assert [(one["id"], one["state"]) for one in listed] == [
        (job.id, "running"),
        (failed.id, "failed"),
    ]
    # Of two jobs of one second the second has the longer name, and the column is as wide as that.
    listing = hotset("jobs", "list", env=here).out
    assert re.search(rf"{re.escape(failed.id)} +tpcc check", listing)
    shown = hotset("jobs", "show", failed.id, "--follow", env=here)
    assert "port 1 failed" in shown.err
    assert "failed (code 4)" in shown.out
    assert (hotset("jobs", "rm", job.id, env=here).code) == 3
    assert hotset("jobs", "cancel", job.id, env=here).code == 0
    assert ended(job).state == "interrupted"
    assert hotset("jobs", "rm", job.id, env=here).code == 0
    gone = hotset("jobs", "show", job.id, env=here)
    assert (gone.code, job.id in gone.err) == (2, True)


STARTS = """
import os, signal, sys
from hotset.operations import run

print(run.start("tpcc build", {"dsn": sys.argv[1], "warehouses": 1,
                               "password": sys.argv[2]}).id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.database
def test_a_job_outlives_its_starter_and_keeps_no_secret(empty: PostgresDatabase) -> None:
    """A real load with a password, whose starter is killed at once; every process of it, and every
    file, is searched for the password while it works."""
    dsn = f"host={empty.host} port={empty.port} user={empty.user} dbname={empty.dbname}"
    done = processes.run([sys.executable, "-c", STARTS, dsn, empty.password])
    assert done.returncode == -signal.SIGKILL, done.stderr
    job = jobs.find(done.stdout.strip())
    assert job.running
    seen: set[str] = set()
    while jobs.find(job.id).running:
        seen |= command_lines(process_of(job))
        time.sleep(0.05)
    assert any("operations.child" in line for line in seen)
    assert [line for line in seen if empty.password in line] == []
    events = heard(job.id)
    assert events[-1].state == "done", events[-1]
    assert "all 12 conditions hold" in [event.text for event in events]
    assert "task" in {event.kind for event in events}
    files = [path for path in data_dir().rglob("*") if path.is_file()]
    assert data_dir() / "jobs" / job.id / "job.json" in files
    assert [path for path in files if empty.password.encode() in path.read_bytes()] == []


def command_lines(group: int) -> set[str]:
    """Of all processes of a group."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(folder.name)) == group:
                found.add((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


@pytest.mark.database
def test_a_run_ticks(database: PostgresDatabase) -> None:
    dsn = f"host={database.host} port={database.port} user={database.user} dbname={database.dbname}"
    job = run.start(
        "tpcc run",
        {
            "dsn": dsn,
            "password": database.password,
            "users": 2,
            "warehouses": 2,
            "rampup": 0,
            "duration": 2,
            "check": False,
        },
    )
    ticks = [event.tick for event in heard(job.id) if event.tick is not None]
    assert [tick["second"] for tick in ticks] == [0, 1]
    assert all(tick["tpm"] > tick["nopm"] > 0 == tick["failed"] for tick in ticks)
    assert all(tick["latency_ms_p95"] > 0 for tick in ticks)
    found = jobs.result(jobs.find(job.id))
    assert found is not None
    (window,) = found["arms"][0]["repeats"]
    assert window["nopm"] > 0
    assert "TPM" in jobs.find(job.id).progress
    assert jobs.find(job.id).latest.startswith(f"NOPM {window['nopm']:,.0f}, TPM ")


def test_a_job_of_a_later_version_is_seen_and_has_everything_for_itself(waits: str) -> None:
    """It was in no list, and another job began beside it on what it worked on. Which that is nobody
    knows here; and to remove its folder was what its message advised."""
    job = run.start(CHECK, {"dsn": waits})
    path = data_dir() / "jobs" / job.id / "job.json"
    kept = path.read_text()
    path.write_text(json.dumps({"schema_version": 2, "hereafter": {}}))
    (seen,) = jobs.every()
    assert (seen.id, seen.state, seen.verb) == (job.id, "running", "unknown")
    assert jobs.running() == [seen]
    assert "written by another version" in seen.messages[0]
    with pytest.raises(JobConflictError, match=f"job {job.id} .*version.*wait for it"):
        run.start(CHECK, {"dsn": CLOSED})
    path.write_text(kept)

"""What the API and the console refuse to name: every field of every operation, by its mark."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, get_origin
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from hotset.core.clock import wait_until
from hotset.core.errors import ForbiddenError
from hotset.core.operation import FieldKind, Kind, Lock, Operation
from hotset.core.paths import data_dir
from hotset.core.rights import Names
from hotset.core.units import Bytes
from hotset.databases.postgres.product import PostgresDatabase, require_known
from hotset.databases.product import DsnKeywordError
from hotset.operations import audit, remote, run, table
from hotset.operations.jobs import store
from hotset.warmup import plan_store

DSN = "host=127.0.0.1 port=1 user=tester dbname=shop"
OPERATIONS = list(table.every())


def text_fields() -> list[tuple[Operation, str, Names | None]]:
    """Every field that holds text, but passwords, and what it is marked with."""
    found = []
    for one in OPERATIONS:
        for name, field in one.fields.items():
            kind = FieldKind.from_field(field)
            is_text = kind.base in (str, Path) and get_origin(kind.base) is not Literal
            if is_text and not kind.secret:
                marks = [mark for mark in kind.metadata if isinstance(mark, Names)]
                found.append((one, name, marks[0] if marks else None))
    return found


FIELDS = text_fields()
# A text that leads out of hotset, for every mark.
ABUSE = {
    Names.WORD: "../../etc/shadow",
    Names.FILE: "/etc/shadow",
    Names.SCRIPT: "/etc/shadow@70",
    Names.OUTPUT: "/etc/cron.d/mine",
    Names.MODEL: "/etc/shadow",
    Names.DEVICE: "/etc/shadow",
    Names.ON_DISK: "snapshot:/etc/shadow",
    Names.SETTINGS: 'storage.model="/etc/shadow"',
    Names.MACHINE: "ssh://root@another.example",
    Names.DATABASE: f"{DSN} passfile=/root/.pgpass",
}
# What a request needs beside the field that is tried.
NEEDED: dict[str, Any] = {
    "at": "Mon..Fri 07:00",
    "cache": "1GiB",
    "by": "last",
    "device": "/dev/disk/by-id/b",
    "disk": "shop",
    "dsn": DSN,
    "engine": "postgres",
    "file": "/srv/allowed/x",
    "flash": "/dev/disk/by-id/a",
    "flash_name": "main",
    "folder": "/srv/allowed/x",
    "half_life": "8h",
    "kind": "dm-cache",
    "database": "oltp",
    "member": 0,
    "model": "nas-2014",
    "name": "nightly",
    "origin": "/dev/disk/by-id/b",
    "recording": "/srv/allowed/x",
    "trace": "/srv/allowed/x",
    "output": "/srv/allowed/x",
    "run": "last",
    "script": ["/srv/allowed/x"],
    "runs": ["a", "b"],
    "size": "1GiB",
    "socket": "/srv/allowed/x",
    "target": "/dev/disk/by-id/a",
    "targets": ["heat"],
    "warehouses": 1,
    "scale": 0.01,
}


def allow(text: str) -> None:
    file = remote.settings_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def ask(found: Operation, values: dict[str, Any]) -> object:
    return (run.start if found.kind is Kind.JOB else run.answer)(found.name, values)


def request(found: Operation, field: str, text: str) -> dict[str, Any]:
    values = {name: NEEDED[name] for name, one in found.fields.items() if one.is_required()}
    values[field] = text
    for name, value in values.items():
        if FieldKind.from_field(found.fields[name]).is_list and not isinstance(value, list):
            values[name] = [value]
    agreed = {"yes": True} if "yes" in found.fields else {}
    return {**values, **agreed}


def test_no_field_names_a_file_a_device_or_a_host_unasked(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """A new field without a mark fails here, and one whose mark does not hold."""
    allow('folders = ["/srv/allowed"]')
    begun: list[object] = []
    monkeypatch.setattr(store, "start", lambda *given: begun.append(given))
    refusals = 0
    for found, field, mark in FIELDS:
        with subtests.test(found=found.name, field=str(field), mark=str(mark)):
            assert mark is not None, "say what its text names: see operations/remote.py"
            if mark is Names.NOTHING:
                continue
            with pytest.raises(ForbiddenError) as refused:
                ask(found, request(found, field, ABUSE[mark]))
            assert (refused.value.field, refused.value.http_status) == (field, 403)
            assert begun == []
            refusals += 1
            entries = audit.entries(refusals + 1)
            assert len(entries) == refusals
            assert (entries[0].what, entries[0].outcome) == (found.name, "refused")


@pytest.mark.parametrize(
    ("name", "field", "text", "said"),
    [
        ("warmup restore", "file", "/srv/allowed/../../etc/shadow", "not below an allowed folder"),
        ("warmup restore", "file", "secret", "is not a full path"),
        ("warmup restore", "file", "/srv/allowedx/y", "not below an allowed folder"),
        ("warmup plan", "mount_point", "/etc", "not below an allowed folder"),
        ("disk bench", "target", "/dev/../etc/shadow", "not below an allowed folder"),
        ("disk bench", "target", "/dev/shm/x", "not below an allowed folder"),  # noqa: S108
        ("disk bench", "against", "/etc/shadow", "not below an allowed folder"),
        ("disk bench", "model", "model.json", "is not a full path"),
        ("demo", "set", "storage.device=/dev/sdb", "not below an allowed folder"),
        ("demo", "set", "storage.model={a = '/etc/shadow'}", "not below an allowed folder"),
        ("database place", "folder", "F:\\tempdb", "not below an allowed folder"),
        ("database place", "folder", "F:\\data\\..\\x", "not below an allowed folder"),
        ("heat top", "machine", "ssh://db1:2222", "`machines` in"),
        ("runs show", "run", "../x", "is a path"),
        ("tpcc check", "dsn", f"{DSN} service=prod", "keyword service"),
        ("tpcc check", "dsn", f"{DSN} options='-c x=y'", "keyword options"),
        ("tpcc check", "dsn", f"{DSN} sslkeylogfile=/etc/x", "keyword sslkeylogfile"),
        ("tpcc check", "dsn", f"{DSN} sslkey=/root/.ssh/id_rsa", "sslkey=/root/.ssh/id_rsa"),
        ("tpcc check", "dsn", f"{DSN} sslrootcert=/root/ca.pem", "sslrootcert=/root/ca.pem"),
        ("tpcc check", "dsn", "user=root dbname=shop", "own socket"),
        ("tpcc check", "dsn", "host=/run/postgresql dbname=shop", "host=/run/postgresql"),
        ("tpcc check", "dsn", "postgresql:///shop?host=db1,/run/postgresql", "host=/run/postg"),
        ("tpcc check", "dsn", "postgresql://%2Frun%2Fpostgresql/shop", "host=/run/postg"),
        ("tpcc check", "dsn", "host=@postgres dbname=shop", "host=@postgres"),
        ("tpcc check", "dsn", f"{DSN} gssencmode=prefer", "Kerberos"),
        ("tpcc check", "dsn", f"{DSN} require_auth=scram-sha-256,gss", "Kerberos"),
        ("tpcc check", "dsn", f"{DSN} require_auth=!password", "Kerberos"),
        ("tpcc check", "dsn", f"{DSN} krbsrvname=postgres", "keyword krbsrvname"),
    ],
)
def test_ways_round_are_refused(name: str, field: str, text: str, said: str) -> None:
    allow('folders = ["/srv/allowed", "F:/data"]\nmachines = ["ssh://db1"]')
    found = table.find(name)
    with pytest.raises(ForbiddenError) as refused:
        ask(found, request(found, field, text))
    assert refused.value.field == field
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        (f"{DSN} scram_client_key=s3cret", "scram_client_key"),
        (f"{DSN} oauth_client_secret=s3cret", "oauth_client_secret"),
        (f"{DSN} oauth_issuer=https://x", "does not take"),
        (f"{DSN} replication=database", "does not take"),
    ],
)
def test_keywords_that_nobody_may_use(dsn: str, said: str) -> None:
    """The command line neither: they reach process lists."""
    with pytest.raises(ValueError, match=said) as refused:
        require_known(conninfo_to_dict(dsn))
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("sa@db1/shop?driver=/tmp/x.so", r"driver=/tmp/x\.so"),
        ("sa@db1/%2Fetc%2Fx?driver=SQLite3", "driver=SQLite3"),
        ("sa@db1/shop?driver=FreeTDS", "driver=FreeTDS, which who runs the server chooses"),
        ("db1/shop?trusted=yes", "trusted=yes, which logs in as who runs the server"),
    ],
)
def test_ways_round_of_sql_server_are_refused(dsn: str, said: str) -> None:
    values = {"engine": "sqlserver", "dsn": f"sqlserver://{dsn}"}
    with pytest.raises(ForbiddenError, match=said):
        run.answer("database show", values)


ITEMS = st.sampled_from(["", "db1", "127.0.0.1", "::1", " ", "/run/postgresql", "@postgres"])


@given(
    hosts=st.none() | st.lists(ITEMS, max_size=4),
    addresses=st.none() | st.lists(ITEMS, max_size=4),
    is_uri=st.booleans(),
)
@example(hosts=["", ""], addresses=None, is_uri=False)
@example(hosts=None, addresses=["", ""], is_uri=False)
@example(hosts=["nosuch.invalid", ""], addresses=None, is_uri=True)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_list_of_hosts_leads_to_the_servers_own_socket(
    hosts: list[str] | None, addresses: list[str] | None, is_uri: bool
) -> None:
    """As libpq pairs them: an address, or else a name, or else its own socket."""
    lists = {"host": hosts, "hostaddr": addresses}
    named = {key: ",".join(items) for key, items in lists.items() if items is not None}
    dsn = f"postgresql:///shop?{urlencode(named)}"
    if not is_uri:
        dsn = " ".join(f"{key}='{text}'" for key, text in {**named, "dbname": "shop"}.items())
    pairs = zip_longest(hosts or [""], addresses or [""], fillvalue="")
    local = [not address and (not host or host[0] in "/@") for host, address in pairs]
    try:
        files = [path for _, path in PostgresDatabase.files_of(dsn)]
    except DsnKeywordError:
        return
    # What is a socket's folder is for the lists of what is allowed.
    assert sum(local) <= len(files)
    assert all(path[0] in "/@" for path in files)


@pytest.mark.parametrize(
    "more",
    [
        "sslmode=verify-full",
        "sslmode=verify-full sslrootcert=system",
        "sslrootcert=/etc/ssl/certs/ca-certificates.crt",
        "sslrootcert=ALLOWED/ca.pem sslcert=ALLOWED/me.pem sslkey=ALLOWED/me.key",
        "passfile=ALLOWED/pgpass",
        "host=ALLOWED/socket",
        "connect_timeout=3 keepalives=1 target_session_attrs=read-write",
    ],
)
def test_what_is_allowed_works(more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(f'folders = ["{tmp_path}"]\nmachines = ["ssh://root@db1"]')
    begun: list[Any] = []
    monkeypatch.setattr(store, "start", lambda *given: begun.append(given[0]) or FakeJob)
    run.start("tpcc check", {"dsn": f"{DSN} {more.replace('ALLOWED', str(tmp_path))}"})
    run.start("warmup snapshot", {"output": f"{tmp_path}/x", "machine": "ssh://root@db1"})
    run.start("experiment run", {"file": str(remote.repository_file("experiments/demo.toml"))})
    run.start("demo", {"set": ["tpcc.users=4", "storage.model=hdd-7200"]})
    run.start("disk bench", {"target": "/dev/disk/by-id/x", "yes": True})
    assert len(begun) == 5


PLAN = plan_store.SavedPlan(
    id="20261121-070000-pg",
    created="2026-11-21T07:00:00+00:00",
    machine="ssh://db1",
    disk="pg",
    origin="/dev/origin",
    targets=("heat",),
    block=Bytes(65536),
    runs=(),
    method="auto",
    samples=50,
    share=0.9,
    rate=None,
    left_out=Bytes(0),
)


class FakeJob:
    id = "x"


@pytest.mark.parametrize("name", ["data/tokens.json", "data", "config/remote.toml", "", "link/x"])
def test_nobody_writes_over_what_hotset_keeps(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the administrator lists a folder that it lies in."""
    for kind in ("data", "config"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    (tmp_path / "link").symlink_to(data_dir())
    name = name.replace("data/", "data/hotset/").replace("config/", "config/hotset/")
    allow(f'folders = ["{tmp_path}"]')
    for operation, field in (("warmup snapshot", "output"), ("warmup restore", "file")):
        with pytest.raises(ForbiddenError, match="is in a folder of hotset's own"):
            run.start(operation, {field: str(tmp_path / name)})


def test_a_link_does_not_lead_out(tmp_path: Path) -> None:
    allow(f'folders = ["{tmp_path}"]')
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(ForbiddenError):
        run.start("warmup restore", {"file": f"{tmp_path}/link/shadow"})


def test_the_machine_that_the_console_was_started_for_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fields = table.find("tier status").fields
    monkeypatch.setenv(remote.MACHINE_VARIABLE, "ssh://db1")
    remote.require(fields, {"machine": "ssh://db1"}, "postgres")
    with pytest.raises(ForbiddenError):
        remote.require(fields, {"machine": "ssh://db2"}, "postgres")


def test_a_saved_plan_is_asked_for_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the request named it: a plan of the command line may be of any."""
    plan_store.save(PLAN)
    begun: list[Any] = []
    monkeypatch.setattr(store, "start", lambda *given: begun.append(given[0]) or FakeJob)
    for named in ("last", PLAN.id):
        with pytest.raises(ForbiddenError, match="ssh://db1 is not among the machines") as refused:
            run.start("warmup run", {"resume": named, "machine": "local"})
        assert refused.value.field == "machine"
    assert begun == []
    allow('machines = ["ssh://db1"]')
    run.start("warmup run", {"resume": "last"})
    (task,) = begun
    assert (task.machine, task.lock) == ("ssh://db1", Lock("machine ssh://db1", "pg"))
    assert task.values["resume"] == PLAN.id, "another may be the last in a moment"


def test_an_experiment_is_asked_for_what_it_names(tmp_path: Path) -> None:
    allow(f'folders = ["{tmp_path}"]')
    demo = remote.repository_file("experiments/demo.toml").read_text()
    file = tmp_path / "mine.toml"
    file.write_text(re.sub(r'^model = "[^"]+"', 'model = "/etc/shadow"', demo, count=1, flags=re.M))
    assert "/etc/shadow" in file.read_text()
    job = run.start("experiment plan", {"file": str(file)})
    ended = wait(job.id)
    assert ended.state == "failed"
    assert "/etc/shadow is not below an allowed folder" in store.cause(ended)


def wait(id_: str) -> store.Job:
    assert wait_until(lambda: not store.find(id_).running, 120, 0.1)
    return store.find(id_)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("folders = '/srv'", "folders is not a list"),
        ('folder = ["/srv"]', "unknown key folder; there are folders, machines, hosts"),
        ('folders = ["srv"]', "'srv' is not a folder's full path"),
        ('folders = ["/"]', "'/' is not a folder's full path"),
        ("folders = [", "remote.toml"),
    ],
)
def test_settings_that_cannot_be_read_allow_nothing(text: str, said: str) -> None:
    allow(text)
    with pytest.raises(remote.SettingsError, match=r"remote\.toml") as refused:
        run.start("warmup restore", {"file": "/srv/x"})
    assert said in str(refused.value)

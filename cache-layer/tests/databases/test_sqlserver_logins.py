"""Log-ins to a server that notes what it is told, with each driver that there is."""

from __future__ import annotations

import os
import re
import string
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyodbc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.sql import CannotConnect
from hotset.databases.sqlserver import freetds, odbc
from hotset.databases.sqlserver.product import SqlServerDatabase
from tests.tds_server import Manner, TdsServer, certificate, tds_server

DRIVERS = [
    pytest.param(
        "FreeTDS",
        id="FreeTDS",
        marks=pytest.mark.skipif(
            "FreeTDS" not in pyodbc.drivers(), reason="FreeTDS is not installed (tdsodbc)"
        ),
    ),
    pytest.param(str(odbc._find_bundled()), id="Microsoft's"),
]
PASSWORD = "Secret-42}"  # noqa: S105


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def impostor(folder: Path) -> Iterator[TdsServer]:
    """Its certificate is of another name, and signed by nobody."""
    with tds_server(certificate(folder, "evil.example")) as server:
        yield server


def log_in(server: TdsServer, driver: str, *options: str, password: str = PASSWORD) -> str:
    """Try to; returns why not."""
    server.logins.clear()
    database = replace(
        SqlServerDatabase.parse(server.dsn(*options), ""), password=password, driver=driver
    )
    with pytest.raises((CannotConnect, PrerequisiteMissingError)) as refused:
        database.session()
    assert password not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("encrypt", ["yes", "mandatory", "strict"])
def test_an_impostor_never_sees_the_password(
    impostor: TdsServer, driver: str, encrypt: str
) -> None:
    """FreeTDS looked at no certificate, whatever the DSN said."""
    impostor.logins.clear()
    text = impostor.dsn().replace("encrypt=yes", f"encrypt={encrypt}")
    database = replace(SqlServerDatabase.parse(text, ""), password=PASSWORD, driver=driver)
    with pytest.raises((CannotConnect, PrerequisiteMissingError)) as refused:
        database.session()
    assert impostor.logins == []
    # Both ways out.
    if encrypt != "strict":
        assert "trust=yes" in str(refused.value)
    elif driver == "FreeTDS":
        assert "Microsoft's driver" in str(refused.value)
        assert "encrypt=yes" in str(refused.value)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_server_that_is_trusted_gets_the_password_as_it_is(
    impostor: TdsServer, driver: str
) -> None:
    log_in(impostor, driver, "trust=yes")
    assert impostor.logins == [("sa", PASSWORD)]


@pytest.mark.parametrize("driver", DRIVERS)
def test_no_password_is_read_as_another(impostor: TdsServer, driver: str) -> None:
    """Whole, or not sent at all."""
    sent = 0

    @settings(
        max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(st.text(st.sampled_from(string.printable[:95]), min_size=1, max_size=20))
    @example(string.printable[:95].replace(";", ""))
    @example("};PWD={b")
    @example("{a}")
    @example("a}}b")
    @example(" ' a=b;c ")
    @example("p" * 128)
    def tried(password: str) -> None:
        nonlocal sent
        said = ""
        impostor.logins.clear()
        parsed = SqlServerDatabase.parse(impostor.dsn("trust=yes"), "")
        with suppress(CannotConnect):
            try:
                replace(parsed, password=password, driver=driver).session()
            except PrerequisiteMissingError as error:
                said = str(error)
        if said:
            assert driver == "FreeTDS"
            assert "}" in password
            assert impostor.logins == []
        else:
            assert impostor.logins == [("sa", password)]
            sent += 1

    tried()
    assert sent > 20


def test_freetds_goes_by_what_the_system_trusts_and_by_the_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a section of its own: what is asked of one server does not hold for another."""
    if "FreeTDS" not in pyodbc.drivers():
        pytest.skip("FreeTDS is not installed (tdsodbc)")
    own = certificate(folder, "localhost")
    monkeypatch.setattr(freetds, "_SYSTEM", str(own))
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    with tds_server(own) as server:
        log_in(server, "FreeTDS")
        assert server.logins == [("sa", PASSWORD)], "it is trusted, and has that name"
        server.logins.clear()
        named = replace(
            SqlServerDatabase.parse(server.dsn(host="127.0.0.1"), ""),
            password=PASSWORD,
            driver="FreeTDS",
        )
        with pytest.raises(CannotConnect, match=r"for '127\.0\.0\.1'.*trust=yes"):
            named.session()
        assert server.logins == []


@pytest.mark.parametrize(
    ("name", "value"), [("TDSVER", "7.0"), ("TDSVER", "5.0"), ("TDSHOST", "::1"), ("TDSPORT", "1")]
)
def test_the_dsn_counts_whatever_the_environment_tells_freetds(
    impostor: TdsServer, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TDS 7.0 has no encryption: an impostor was sent the password."""
    if "FreeTDS" not in pyodbc.drivers():
        pytest.skip("FreeTDS is not installed (tdsodbc)")
    monkeypatch.setenv(name, value)
    log_in(impostor, "FreeTDS")
    assert impostor.logins == []
    monkeypatch.setenv(name, value)
    log_in(impostor, "FreeTDS", "trust=yes")
    assert impostor.logins == [("sa", PASSWORD)], "at the DSN's host and port"


NOT_ITS_PORT = r"the DSN's port {port} .*not as SQL Server does.*TCP/IP"


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("options", ["trust=no", "trust=yes"])
@pytest.mark.parametrize(
    ("manner", "reason"),
    [
        # PostgreSQL closes the connection, as its log says, for "invalid length of startup packet".
        ("hangs up", NOT_ITS_PORT),
        ("resets", NOT_ITS_PORT),
        ("resets after PRELOGIN", r"closed the connection.*errorlog"),
        ("TLS 1.0", r"TLS 1\.2.*update the server"),
    ],
)
def test_a_peer_that_no_log_in_is_sent_to_is_told_by_its_fault(
    folder: Path, driver: str, options: str, manner: Manner, reason: str
) -> None:
    """FreeTDS took each for a certificate that is not trusted, with the advice not to check it."""
    with (
        warnings.catch_warnings(action="ignore", category=DeprecationWarning),
        tds_server(certificate(folder, "evil.example"), manner=manner) as server,
    ):
        said = log_in(server, driver, options)
        assert server.logins == []
        assert re.search(reason.format(port=server.port), said), said
        assert "certificate" not in said


@pytest.mark.parametrize("driver", DRIVERS)
def test_another_servers_certificate_is_told_by_its_name(
    folder: Path, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the system trusts: that of another instance, say."""
    other = certificate(folder, "db2.example")
    monkeypatch.setattr(freetds, "_SYSTEM", str(other))
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    with tds_server(other) as server:
        said = log_in(server, driver)
        assert server.logins == []
        assert re.search(r"not valid for 'localhost'.*the host in the DSN", said), said


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("part", ["a;b", "a}b", "{a", "a{b}", "a=b", "a b", "it's", "};UID={b"])
def test_every_part_of_a_dsn_arrives_as_it_is_or_is_refused(
    impostor: TdsServer, driver: str, part: str
) -> None:
    quoted = quote(part, safe="")
    text = impostor.dsn("trust=yes").replace("sa@", f"{quoted}@").replace("/shop", f"/{quoted}")
    impostor.logins.clear()
    impostor.databases.clear()
    with pytest.raises((CannotConnect, PrerequisiteMissingError)) as refused:
        replace(SqlServerDatabase.parse(text, ""), password=part, driver=driver).session()
    if impostor.logins:
        assert (impostor.logins, impostor.databases) == ([(part, part)], [part])
    else:
        assert driver == "FreeTDS"
        assert re.search(r"FreeTDS cannot be given a .*'}'.*change it", str(refused.value))


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("password", ["p" * 129, "\U0001f600" * 65, "a\0b", "a\udcffb"])
def test_a_password_that_no_log_in_can_carry_is_not_cut_off(
    impostor: TdsServer, driver: str, password: str
) -> None:
    """FreeTDS sent the first 128 characters, both drivers what is before a zero."""
    said = log_in(impostor, driver, "trust=yes", password=password)
    assert impostor.logins == []
    assert re.search(r"the password (has 1\d\d characters.* 128|holds a character)", said), said


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("number", "text", "remedy"),
    [
        (4060, 'Cannot open database "shop" requested by the login.', "GRANT"),
        (927, "Database 'shop' cannot be opened. It is in the middle of a restore.", "RECOVERY"),
        (18456, "Login failed for user 'sa'.", "password"),
    ],
)
def test_a_database_that_is_not_opened_is_told_with_a_way_out(
    folder: Path, driver: str, number: int, text: str, remedy: str
) -> None:
    with tds_server(certificate(folder, "evil.example")) as server:
        server.refusals = ((number, text),)
        said = log_in(server, driver, "trust=yes")
        assert remedy in said.partition(text.rstrip("."))[2]


def test_nothing_of_freetds_settings_is_left_by_a_process_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "from hotset.databases.sqlserver import freetds\n"
        "from hotset.databases.sqlserver.product import SqlServerDatabase as Database\n"
        'freetds.configure(Database.parse("sqlserver://sa@db/shop?trust=yes", ""))\n'
        'assert "db" in open(os.environ["FREETDSCONF"]).read()\n'
        "os.kill(os.getpid(), 9)\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert ended.returncode == -9
    assert not list(tmp_path.iterdir())

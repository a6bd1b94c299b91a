"""Log-ins to a server that notes what it is told, with each driver that there is."""

from __future__ import annotations

import string
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyodbc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.sql import CannotConnect
from hotset.databases.sqlserver import dsn, freetds, odbc
from tests.tds_server import TdsServer, certificate, tds_server

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
    database = replace(dsn.parse(server.dsn(*options)), password=password, driver=driver)
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
    database = replace(dsn.parse(text), password=PASSWORD, driver=driver)
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
        parsed = dsn.parse(impostor.dsn("trust=yes"))
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
    with tds_server(own) as server:
        log_in(server, "FreeTDS")
        assert server.logins == [("sa", PASSWORD)], "it is trusted, and has that name"
        server.logins.clear()
        named = replace(
            dsn.parse(server.dsn(host="127.0.0.1")), password=PASSWORD, driver="FreeTDS"
        )
        with pytest.raises(CannotConnect, match=r"for 127\.0\.0\.1.*trust=yes"):
            named.session()
        assert server.logins == []

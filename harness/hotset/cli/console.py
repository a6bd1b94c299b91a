"""``hotset console``: the web console and the HTTP API; ``hotset console password``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.core.environment import of_server

from . import tokens
from .options import HostOption

if TYPE_CHECKING:
    import socket

PASSWORD_FILE_VARIABLE = "HOTSET_CONSOLE_PASSWORD_FILE"  # noqa: S105 - a variable's name

app = typer.Typer(
    help="Start the web console and the HTTP API (/api/v1).", invoke_without_command=True
)
app.add_typer(tokens.app, name="token")


@app.callback()
def console(
    context: typer.Context,
    bind: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free port.")
    ] = 8480,
    cert: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="TLS certificate (PEM).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="TLS private key (PEM).")
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Let other computers connect without TLS: anyone on the network can read"
            " everything.",
        ),
    ] = False,
    public_url: Annotated[
        str | None,
        typer.Option(
            "--public-url",
            metavar="https://NAME",
            help="Address that browsers use, if a proxy in front of the console has the TLS"
            " certificate. Cookies are then sent over TLS only.",
        ),
    ] = None,
    machine: HostOption = "local",
) -> None:
    """Serve the console until Ctrl-C; its jobs go on after that.

    Files, machines and host names that its callers may name are those of remote.toml in hotset's
    folder of settings (~/.config/hotset), which docs/console-and-api.md explains.

    The first start asks for a password; without a terminal it is the first line of the file that
    HOTSET_CONSOLE_PASSWORD_FILE names.
    """
    if context.invoked_subcommand is not None:
        return
    if (cert is None) != (key is None):
        raise typer.BadParameter("--cert and --key go together", param_hint="--cert")
    _check_bind(bind, tls=cert is not None, insecure=insecure)
    public_name = None if public_url is None else _public_name(public_url)
    _check_machine(machine)
    _first_password()
    from hotset.console.app import create
    from hotset.console.serving import serve
    from hotset.console.web import Settings
    from hotset.operations.remote import MACHINE_VARIABLE

    environment = of_server(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    # What its pages and its API use where a request names no machine, and may name.
    os.environ[MACHINE_VARIABLE] = machine
    app = create(Settings(machine, tls=bool(cert or public_name), public_name=public_name))
    with _listening(bind, port) as listener:
        scheme, address = "https" if cert else "http", listener.getsockname()
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        note = f"for browsers {public_url}; Ctrl-C ends it" if public_url else "Ctrl-C ends it"
        typer.echo(f"hotset console: {scheme}://{host}:{address[1]}/ ({note})", err=True)
        if cert is not None:
            typer.echo(f"certificate, SHA-256: {_fingerprint(cert)}", err=True)
        serve(app, listener, cert, key)


@app.command("password")
def password(
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file",
            help="A file whose first line is the password. Without it you are asked for one.",
        ),
    ] = None,
) -> None:
    """Set the console's password. Everybody has to log in again."""
    _save(password_file)
    typer.echo("the console's password was set", err=True)


def _fingerprint(cert: Path) -> str:
    """The SHA-256 of a certificate, as browsers show it and Connect-Hotset takes it."""
    import hashlib
    import ssl

    text = cert.read_text(encoding="ascii", errors="replace")
    begin = text.find("-----BEGIN CERTIFICATE-----")
    end = text.find("-----END CERTIFICATE-----", begin)
    if begin < 0 or end < 0:
        raise typer.BadParameter(f"{cert} holds no certificate (PEM)", param_hint="--cert")
    # Its own; the others of a chain follow.
    der = ssl.PEM_cert_to_DER_cert(text[begin : end + len("-----END CERTIFICATE-----")])
    return hashlib.sha256(der).digest().hex(":").upper()


def _check_bind(bind: str, tls: bool, insecure: bool) -> None:
    import ipaddress

    try:
        loopback = ipaddress.ip_address(bind).is_loopback
    except ValueError:
        raise typer.BadParameter(
            f"{bind!r} is not an address: write for instance 127.0.0.1, ::1 or 0.0.0.0",
            param_hint="--bind",
        ) from None
    if not loopback and not tls and not insecure:
        raise typer.BadParameter(
            f"{bind} lets other computers connect: give --cert and --key, or add --insecure",
            param_hint="--bind",
        )


def _public_name(url: str) -> str:
    """The name in an address that browsers use."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        name, _ = parts.hostname, parts.port
    except ValueError:
        parts, name = urlsplit(""), None
    if parts.scheme != "https" or not name or parts.username or url.rstrip("/").count("/") != 2:
        raise typer.BadParameter(
            f"{url!r}: write https:// and a name, such as https://console.example.org; the console"
            " cannot be below a path",
            param_hint="--public-url",
        )
    return name


def _check_machine(name: str) -> None:
    """Its name; that it answers is seen by each page. Raises MachineNameError."""
    from hotset.core.machines import names as connect

    if name not in (connect.LOCAL, *connect.GUESTS):
        connect.account(name)


def _first_password() -> None:
    from hotset.console import passwords

    if passwords.read_hash() is not None:
        return
    named = os.environ.get(PASSWORD_FILE_VARIABLE)
    _save(Path(named) if named else None)


def _save(file: Path | None) -> None:
    """Set the password that a file holds, or that is asked for."""
    from hotset.console import passwords
    from hotset.operations import audit

    try:
        given = _ask() if file is None else passwords.read(file)
        with audit.keeping(audit.on_command_line(), "console password", {}):
            passwords.save(given)
    except passwords.PasswordError as error:
        raise typer.BadParameter(str(error), param_hint="PASSWORD") from None


def _ask() -> str:
    import sys

    from hotset.core.machines.base import PrerequisiteMissingError

    if not sys.stdin.isatty():
        raise PrerequisiteMissingError(
            "there is no terminal to ask for the console's password: `hotset console password"
            f" --password-file FILE`, or name a file in {PASSWORD_FILE_VARIABLE}"
        )
    asked: str = typer.prompt(
        "A password for the console", hide_input=True, confirmation_prompt=True, err=True
    )
    return asked


def _listening(bind: str, port: int) -> socket.socket:
    import socket

    from hotset.core.machines.base import PrerequisiteMissingError

    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        return socket.create_server((bind, port), family=family)
    except OSError as error:
        raise PrerequisiteMissingError(
            f"--port {port}: {bind}:{port} cannot be listened at ({error.strerror}); take another"
            " with --port"
        ) from None

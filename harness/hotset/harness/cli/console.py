"""``hotset console``: the web console and the HTTP API; ``hotset console password``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.harness.cli import tokens
from hotset.harness.cli.options import HostOption

if TYPE_CHECKING:
    import socket

PASSWORD_FILE_VARIABLE = "HOTSET_CONSOLE_PASSWORD_FILE"  # noqa: S105 - a variable's name

app = typer.Typer(
    help="The web console, and the HTTP API under /api/v1.", invoke_without_command=True
)
app.add_typer(tokens.app, name="token")


@app.callback()
def console(
    context: typer.Context,
    bind: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8480,
    cert: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="TLS: the certificate (PEM).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="TLS: its private key (PEM).")
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Let other computers in without TLS: all can be read."),
    ] = False,
    machine: HostOption = "local",
) -> None:
    """Serve the console until Ctrl-C; its jobs go on after that.

    The first start asks for a password; without a terminal it is the first line of the file that
    HOTSET_CONSOLE_PASSWORD_FILE names.
    """
    if context.invoked_subcommand is not None:
        return
    if (cert is None) != (key is None):
        raise typer.BadParameter("--cert and --key go together", param_hint="--cert")
    _check_bind(bind, tls=cert is not None, insecure=insecure)
    _check_machine(machine)
    _first_password()
    from hotset.harness.console.app import create
    from hotset.harness.console.serving import serve
    from hotset.harness.console.web import Settings

    app = create(Settings(machine, tls=cert is not None))
    with _listening(bind, port) as listener:
        scheme, address = "https" if cert else "http", listener.getsockname()
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        typer.echo(f"hotset console: {scheme}://{host}:{address[1]}/ (Ctrl-C ends it)", err=True)
        serve(app, listener, cert, key)


@app.command("password")
def password(
    password_file: Annotated[
        Path | None,
        typer.Option("--password-file", help="Its first line; without it the terminal is asked."),
    ] = None,
) -> None:
    """Set the console's password; whoever is logged in has to log in again."""
    from hotset.harness.console import passwords

    try:
        passwords.save(_asked() if password_file is None else passwords.read(password_file))
    except passwords.PasswordError as error:
        raise typer.BadParameter(str(error), param_hint="PASSWORD") from None
    typer.echo("the console's password is set", err=True)


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
            f"{bind} lets other computers in: give --cert and --key, or say --insecure",
            param_hint="--bind",
        )


def _check_machine(name: str) -> None:
    """Its name; that it answers is seen by each page. Raises MachineNameError."""
    from hotset.cachelayer import machines

    if name not in (machines.LOCAL, machines.LAB):
        machines.account(name)


def _first_password() -> None:
    from hotset.harness.console import passwords

    if passwords.stored() is not None:
        return
    named = os.environ.get(PASSWORD_FILE_VARIABLE)
    try:
        passwords.save(passwords.read(Path(named)) if named else _asked())
    except passwords.PasswordError as error:
        raise typer.BadParameter(str(error), param_hint="PASSWORD") from None


def _asked() -> str:
    import sys

    from hotset.cachelayer.machine import EnvironmentLacksError

    if not sys.stdin.isatty():
        raise EnvironmentLacksError(
            "there is no terminal to ask for the console's password: `hotset console password"
            f" --password-file FILE`, or name a file in {PASSWORD_FILE_VARIABLE}"
        )
    asked: str = typer.prompt(
        "A password for the console", hide_input=True, confirmation_prompt=True, err=True
    )
    return asked


def _listening(bind: str, port: int) -> socket.socket:
    import socket

    from hotset.cachelayer.machine import EnvironmentLacksError

    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    try:
        return socket.create_server((bind, port), family=family)
    except OSError as error:
        raise EnvironmentLacksError(
            f"--port {port}: {bind}:{port} cannot be listened at ({error.strerror}); take another"
            " with --port"
        ) from None

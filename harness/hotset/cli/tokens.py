"""``hotset console token create|list|revoke``: who may use the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from hotset.core.rights import Right
from hotset.core.words import listing

from .options import Format, FormatOption

app = typer.Typer(
    help="Manage the tokens of programs that use the HTTP API.",
    no_args_is_help=True,
)
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The token's name: what it is for, such as nightly-report."
    ),
]


@app.command("create")
def create_token(
    name: NameArgument,
    right: Annotated[
        Right,
        typer.Option(
            help="metrics: fetch /metrics only; read: see everything; operate: also run"
            " benchmarks and warm-ups; admin: also erase data and change how a server is"
            " set up."
        ),
    ] = Right.READ,
    valid_days: Annotated[
        int | None,
        typer.Option(min=1, max=3650, help="Days until it expires; without it, it never does."),
    ] = None,
) -> None:
    """Create a token and print it. It is shown only this once; hotset keeps its hash."""
    from hotset.api import tokens
    from hotset.core.progress import to_stdout
    from hotset.operations import audit

    asked = {"name": name, "right": right.value, "valid_days": valid_days}
    with audit.keeping(audit.on_command_line(), "console token create", asked):
        text = tokens.create(name, right, valid_days)
    to_stdout(text)


@app.command("list")
def list_tokens(format_: FormatOption = Format.TABLE) -> None:
    """List the tokens: name, creation, right, expiry, last use."""
    from hotset.api import tokens
    from hotset.core.progress import to_stdout

    uses = tokens.last_uses()
    rows = [
        (
            token.name,
            token.created,
            token.right.value,
            token.expires or "",
            uses.get(token.name, ""),
        )
        for token in tokens.every()
    ]
    to_stdout(
        listing(
            "tokens",
            tokens.SCHEMA_VERSION,
            ("name", "created", "right", "expires", "last_used"),
            rows,
            format_.value,
            "no tokens yet",
        )
    )


@app.command("revoke")
def revoke_token(name: NameArgument) -> None:
    """Revoke a token. It stops working at once."""
    from hotset.api import tokens
    from hotset.operations import audit

    with audit.keeping(audit.on_command_line(), "console token revoke", {"name": name}):
        tokens.revoke(name)
    typer.echo(f"revoked {name}", err=True)

"""``hotset console token create|list|revoke``: who may use the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from hotset.harness.cli.options import Format, FormatOption

app = typer.Typer(
    help="Tokens of programs that use the HTTP API. Who holds one may do what you may.",
    no_args_is_help=True,
)
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="What the token is for, such as nightly-report.")
]


@app.command("create")
def create_token(name: NameArgument) -> None:
    """Make a token and print it: it is shown this once, and kept as a hash only."""
    from hotset.harness.api import tokens
    from hotset.harness.progress import to_stdout

    to_stdout(tokens.create(name))


@app.command("list")
def list_tokens(format_: FormatOption = Format.TABLE) -> None:
    """The tokens' names, and when each was made."""
    from hotset.harness.api import tokens
    from hotset.harness.progress import to_stdout
    from hotset.reports.tables import records

    rows = [(token.name, token.created) for token in tokens.every()]
    to_stdout(records("tokens", tokens.SCHEMA_VERSION, ("name", "created"), rows, format_.value,
                      "no tokens yet"))  # fmt: skip


@app.command("revoke")
def revoke_token(name: NameArgument) -> None:
    """Take a token back: from now on it opens nothing."""
    from hotset.harness.api import tokens

    tokens.revoke(name)
    typer.echo(f"revoked {name}", err=True)

"""Tokens of programs that use the API: named, revocable, and kept as hashes only.

A token is 256 random bits, so that a plain SHA-256 of it is as good as a slow hash: there is
nothing to guess. Who holds one may do what the user may who runs the server.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from hotset.cachelayer.paths import data_dir, write_whole

SCHEMA_VERSION = 1
PREFIX = "hotset_"
"""So that a token is known as one wherever it turns up."""
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}", re.ASCII)


class TokenError(ValueError):
    """A name that cannot be given, or that no token has."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token.

    :ivar created: ISO 8601, UTC.
    :ivar sha256: of the token's text, in hexadecimal digits.
    """

    name: str
    created: str
    sha256: str


def create(name: str) -> str:
    """Make a token and return it: this is the only time that it is shown.

    :raises TokenError: the name is taken, or is none.
    """
    if not _NAME.fullmatch(name):
        raise TokenError(f"NAME {name!r}: write letters, digits, '.', '_' and '-', at most 64")
    text = PREFIX + secrets.token_urlsafe(32)
    with _changing() as tokens:
        if any(token.name == name for token in tokens):
            raise TokenError(f"NAME {name!r}: there is such a token; revoke it first, or take"
                             " another name")  # fmt: skip
        created = datetime.now(UTC).isoformat(timespec="seconds")
        tokens.append(Token(name, created, _hash(text)))
    return text


def every() -> list[Token]:
    """All tokens, the oldest first."""
    try:
        kept = json.loads(_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [Token(**fields) for fields in kept["tokens"]]


def revoke(name: str) -> None:
    """From now on a token is not taken any more.

    :raises TokenError: there is none of that name.
    """
    with _changing() as tokens:
        found = [token for token in tokens if token.name == name]
        if not found:
            known = ", ".join(token.name for token in tokens) or "none"
            raise TokenError(f"NAME {name!r}: there is no such token; there is: {known}")
        tokens.remove(found[0])


def holder(text: str) -> str | None:
    """The name of the token, None of a text that is none. Takes the same time for both."""
    wanted = _hash(text)
    found = [token.name for token in every() if hmac.compare_digest(token.sha256, wanted)]
    return found[0] if found else None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _file() -> Path:
    return data_dir() / "tokens.json"


@contextmanager
def _changing() -> Iterator[list[Token]]:
    """The tokens, kept again at the end; one change at a time."""
    with _file().with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = every()
        yield tokens
        kept = {"schema_version": SCHEMA_VERSION, "tokens": [asdict(token) for token in tokens]}
        write_whole(_file(), json.dumps(kept, indent=1) + "\n", 0o600)

"""Tokens of programs that use the API: named, revocable, and kept as hashes only.

A token is 256 random bits, so that a plain SHA-256 of it is as good as a slow hash: there is
nothing to guess. Each has a right: who holds it may call the operations that take no more.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hotset.core import record
from hotset.core.errors import RequestError
from hotset.core.paths import data_dir, lock_file, write_whole
from hotset.core.rights import Right

SCHEMA_VERSION = 1
PREFIX = "hotset_"
"""So that a token is known as one wherever it turns up."""
_noted: dict[tuple[Path, str], str] = {}
"""Uses of tokens that this process has recorded."""
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}", re.ASCII)


class TokenError(RequestError):
    """A name that cannot be given, or that no token has."""


@dataclass(frozen=True, slots=True)
class Token:
    """The stored record of a token.

    :ivar created: ISO 8601, UTC.
    :ivar sha256: of the token's text, in hexadecimal digits.
    :ivar expires: ISO 8601, UTC: from then on it is not taken; None: never.
    """

    name: str
    created: str
    sha256: str
    right: Right
    expires: str | None

    @property
    def expired(self) -> bool:
        return self.expires is not None and datetime.fromisoformat(self.expires) <= _now()


def create(name: str, right: Right = Right.READ, valid_days: int | None = None) -> str:
    """Make a token and return it: this is the only time that it is shown.

    :param valid_days: until it expires; None: never.
    :raises TokenError: the name is taken, or is none.
    """
    if not _NAME.fullmatch(name):
        raise TokenError(
            f"{name!r} is not a name: write letters, digits, '.', '_' and '-', at most 64",
            field="name",
        )
    text = PREFIX + secrets.token_urlsafe(32)
    with _changing() as tokens:
        if any(token.name == name for token in tokens):
            raise TokenError(
                f"there is a token {name!r} already: revoke it first, or take another name",
                field="name",
            )
        now = _now()
        expires = None
        if valid_days is not None:
            expires = (now + timedelta(days=valid_days)).isoformat(timespec="seconds")
        created = now.isoformat(timespec="seconds")
        tokens.append(Token(name, created, _hash(text), right, expires))
    return text


def every() -> list[Token]:
    """All tokens, the oldest first.

    :raises TokenError: another version of hotset wrote them, and what they may is not known here.
    """
    try:
        kept = json.loads(_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    if kept.get("schema_version") != SCHEMA_VERSION:
        raise _of_another(record.expected_version(kept.get("schema_version"), SCHEMA_VERSION))
    names = [field.name for field in dataclasses.fields(Token)]
    for strange in (record.strange(fields, names) for fields in kept["tokens"]):
        if strange:
            raise _of_another(strange)
    try:
        return [Token(**{**fields, "right": Right(fields["right"])}) for fields in kept["tokens"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _of_another(f"{type(error).__name__}: {error}") from None


def _of_another(what: str) -> TokenError:
    return TokenError(record.unknown(_file(), what, "and create tokens again"))


def revoke(name: str) -> None:
    """From now on a token is not taken any more.

    :raises TokenError: there is none of that name.
    """
    with _changing() as tokens:
        matching = [token for token in tokens if token.name == name]
        if not matching:
            known = ", ".join(token.name for token in tokens) or "none"
            raise TokenError(f"there is no token {name!r}; there are: {known}", field="name")
        tokens.remove(matching[0])
        uses = {other: at for other, at in last_uses().items() if other != name}
        write_whole(_uses_file(), json.dumps(uses) + "\n", 0o600)


def find(text: str) -> Token | None:
    """The token of a text, None of a text that is none (any more). Takes the same time for both."""
    wanted = _hash(text)
    matching = [token for token in every() if hmac.compare_digest(token.sha256, wanted)]
    return matching[0] if matching and not matching[0].expired else None


def note_use(token: Token) -> None:
    """Keep when a token was used last, to the minute."""
    now = _now().isoformat(timespec="minutes")
    # Asked at every request: no file is touched but once a minute.
    if _noted.get((_uses_file(), token.sha256)) == now:
        return
    _noted[_uses_file(), token.sha256] = now
    with _exclusively():
        text = json.dumps({**last_uses(), token.name: now})
        write_whole(_uses_file(), f"{text}\n", 0o600)


def last_uses() -> dict[str, str]:
    """When each token that was ever used was used last (ISO 8601, UTC), by name."""
    try:
        uses: dict[str, str] = json.loads(_uses_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return uses


def _now() -> datetime:
    return datetime.now(UTC)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _file() -> Path:
    return data_dir() / "tokens.json"


def _uses_file() -> Path:
    return data_dir() / "token-uses.json"


def _exclusively() -> AbstractContextManager[None]:
    return lock_file(_file().with_suffix(".lock"))


@contextmanager
def _changing() -> Iterator[list[Token]]:
    """The tokens, kept again at the end; one change at a time."""
    with _exclusively():
        tokens = every()
        yield tokens
        kept = {"schema_version": SCHEMA_VERSION, "tokens": [asdict(token) for token in tokens]}
        write_whole(_file(), json.dumps(kept, indent=1) + "\n", 0o600)

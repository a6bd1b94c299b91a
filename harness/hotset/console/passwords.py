"""The console's one password: kept as an argon2 hash, readable by its owner alone."""

from __future__ import annotations

from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from hotset.core.errors import RequestError
from hotset.core.paths import data_dir, write_whole

LENGTH_MIN = 10
LENGTH_MAX = 1024
_HASHER = PasswordHasher()


class PasswordError(RequestError):
    """Not a password that the console takes; the message says why."""


def read_hash() -> str | None:
    """The hash of the password; None where none was set yet."""
    try:
        return _path().read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None


def save(password: str) -> None:
    """Save a password's hash, atomically. All users have to log in again.

    :raises PasswordError: too short or too long.
    """
    if not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        raise PasswordError(
            f"the console's password has {len(password)} characters: take {LENGTH_MIN} or more"
            f" (and at most {LENGTH_MAX})"
        )
    target = _path()
    target.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(target, _HASHER.hash(password) + "\n", 0o600)


def read(path: Path) -> str:
    """A password out of a file: its first line.

    :raises PasswordError: the file cannot be read or is empty.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PasswordError(f"the console's password cannot be read from {path}: {error}") from None
    first = text.split("\n", 1)[0].rstrip("\r")
    if not first:
        raise PasswordError(f"{path} holds no password: write it on the file's first line")
    return first


def matches(password: str, kept: str) -> bool:
    """True if the password matches this hash. Takes some 50 ms of a core and 64 MiB."""
    try:
        return _HASHER.verify(kept, password[: LENGTH_MAX + 1])
    except (VerificationError, InvalidHashError):
        return False


def _path() -> Path:
    return data_dir() / "console" / "password"

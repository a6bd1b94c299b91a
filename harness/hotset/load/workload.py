"""Model of what users do in a run: a `Workload`, such as TPC-C.

Run, worker processes and samples know no more of a transaction than the number of its kind.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .record import WindowOptions


class Step(NamedTuple):
    """The next transaction of a user: the number of its kind, and the user's own pauses, in
    seconds, before and after it."""

    kind: int
    before_s: float = 0.0
    after_s: float = 0.0


class UserFailed(Exception):
    """A user cannot go on, whatever the server does; ends the run."""


class User(Protocol):
    """One user with a connection, used by one thread.

    first_pause_s  until the first transaction, so that not all begin in the same instant
    """

    first_pause_s: float

    def next(self) -> Step:
        """Choose a transaction and its inputs."""

    def perform(self) -> None:
        """Do it. Called again with the same inputs where it was `Aborted` as retryable.

        Raises `IntendedRollback`, `Aborted`, `ServerGone`, `UserFailed`.
        """

    def close(self) -> None:
        """Close the connection."""


class Workload(Protocol):
    """Picklable: each worker process gets a copy."""

    @property
    def kinds(self) -> Sequence[str]:
        """Names of the kinds of transactions, by number."""

    @property
    def options(self) -> WindowOptions:
        """How it is run."""

    def user(self, number: int) -> User:
        """Connect. Raises `CannotConnect`."""

"""How a run with HammerDB goes wrong."""

from __future__ import annotations

from hotset.core.errors import HotsetError, RequestError


class HammerdbFailed(HotsetError):
    """HammerDB did not do what was asked, whatever its exit code says; `cause` is one line."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class HammerdbRefused(RequestError):
    """An option that HammerDB cannot take; names field, value and remedy."""

"""Under which names the console answers.

A page of another site can have its own name resolve to this computer's address (DNS rebinding), and
the browser then takes the console for that site. So only names that nobody else gives out are
answered: addresses, ``localhost``, this computer's own name, the one of ``--public-url``, and what
the administrator allowed.
"""

from __future__ import annotations

import ipaddress
import socket

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hotset.core.errors import HotsetError
from hotset.operations import remote


class KnownHosts:
    """Middleware that refuses requests sent to another name."""

    def __init__(self, app: ASGIApp, public_name: str | None = None) -> None:
        """:param public_name: what browsers call it, where a proxy is in front of it."""
        self._app = app
        names = ("localhost", socket.gethostname(), public_name or "localhost")
        self._own = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._refusal(Headers(scope=scope).get("host", ""))
            if refusal:
                await PlainTextResponse(refusal, 421)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, header: str) -> str:
        """Why a Host header is not taken; empty of one that is."""
        name = host_of(header)
        try:
            if name in self._own or _is_address(name) or name in _allowed_names():
                return ""
        except HotsetError as error:
            return f"{error}\n"
        return (
            f"{name or 'no name'!r} is not a name of this console. If it is one, add it to `hosts`"
            f" in {remote.settings_file()} on the server.\n"
        )


def host_of(header: str) -> str:
    """The name of a Host header, without the port.

    >>> host_of("DB1.example.org:8480"), host_of("[::1]:8480"), host_of("10.0.0.7")
    ('db1.example.org', '::1', '10.0.0.7')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _allowed_names() -> set[str]:
    return {host.lower().rstrip(".") for host in remote.read_permitted().hosts}

"""How many may be connected, and for how long each may take its time: slow clients, or many,
do not block the server.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_FLUSH_S = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """
    :ivar connections: in all. One more takes the place of the one that has kept the server waiting
        for the longest; where all are being answered, it is refused.
    :ivar request_s: within that, a request has come whole, counted from the connection's beginning
        or from the answer before it; however often a bit of it comes.
    :ivar reader_s: within that, some of an answer that waits for its reader is taken.
    :ivar handshake_s: within that, TLS is agreed upon.
    """

    connections: int = 256
    request_s: float = 20.0
    reader_s: float = 30.0
    handshake_s: float = 10.0


def limit_protocol(limits: Limits) -> type[H11Protocol]:
    """Build the protocol with which uvicorn serves a connection within these limits."""

    class Limited(_Connection):
        _limits = limits

    return Limited


class _Connection(H11Protocol):
    _limits: Limits

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - as uvicorn calls it
        super().__init__(*args, **named)
        self.asking_since = 0.0
        self._asked_by: asyncio.TimerHandle | None = None
        self._read_by: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio sets it of sockets whose protocol is named, and the listener's is not.
        line = transport.get_extra_info("socket")
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()
        others = [
            connection
            for connection in self.connections
            if isinstance(connection, _Connection) and connection.is_open
        ]
        if len(others) <= self._limits.connections:
            return
        waiting = [other for other in others if other.is_asking and other is not self]
        if waiting:
            min(waiting, key=lambda connection: connection.asking_since).refuse(408, abruptly=True)
        else:
            self.refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._asked_by)
        self._asked_by = None
        _cancel(self._read_by)
        self._read_by = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._read_by is None:
            self._read_by = self.loop.call_later(self._limits.reader_s, self._abort)

    def resume_writing(self) -> None:
        _cancel(self._read_by)
        self._read_by = None
        super().resume_writing()

    def refuse(self, status: int, abruptly: bool = False) -> None:
        """Close it; where it has had no answer yet, with one that says why.

        :param abruptly: without waiting for what is unsent.
        """
        if self.is_open and self._may_say_why:
            reason = {408: "Request Timeout", 503: "Service Unavailable"}[status]
            text = {
                408: "the request did not come whole in time, or others needed its place",
                503: "too many connections are open; try again later",
            }[status]
            self.transport.write(
                f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                f"Content-Length: {len(text) + 1}\r\nConnection: close\r\n\r\n{text}\n".encode()
            )
        self.transport.close()
        if abruptly:
            self.transport.abort()
        else:
            self.loop.call_later(_FLUSH_S, self._abort)

    def _abort(self) -> None:
        """Close it at once; the kernel, too, keeps nothing for a reader who does not read."""
        line = self.transport.get_extra_info("socket")
        if line is not None and line.fileno() >= 0:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()

    @property
    def is_asking(self) -> bool:
        """No whole request has come that is not answered yet."""
        return self.cycle is None or self.cycle.more_body or self.cycle.response_complete

    @property
    def _may_say_why(self) -> bool:
        """Nothing of an answer lies before what is written now, nor was there one before."""
        return self.cycle is None or not self.cycle.response_started

    def _watch(self) -> None:
        if not self.is_asking:
            _cancel(self._asked_by)
            self._asked_by = None
        elif self._asked_by is None:
            self.asking_since = self.loop.time()
            self._asked_by = self.loop.call_later(self._limits.request_s, self.refuse, 408)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()

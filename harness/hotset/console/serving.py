"""The server: streams, which never end by themselves, end with it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hotset.api.endless import run_until

from .connections import Limits, limit_protocol

_GRACE_S = 2
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Ciphers for TLS 1.2. uvicorn's default has old ciphers, even those without encryption."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    app: Starlette,
    listener: socket.socket,
    cert: Path | None,
    key: Path | None,
    limits: Limits = Limits(),  # noqa: B008 - it cannot change
) -> None:
    """Until SIGINT or SIGTERM."""
    closing = asyncio.Event()
    config = uvicorn.Config(
        EndsWithServer(app, closing),
        http=limit_protocol(limits),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
        ssl_certfile=cert,
        ssl_keyfile=key,
        ssl_ciphers=_CIPHERS,
        lifespan="off",
    )
    _Server(config, closing, limits, app.router.lifespan_context(app)).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says when it is about to end, which it does once all have been answered. A signal is how one
    ends it: it is not raised once more afterwards."""

    def __init__(
        self,
        config: uvicorn.Config,
        closing: asyncio.Event,
        limits: Limits,
        lifespan: AbstractAsyncContextManager[object],
    ) -> None:
        """:param lifespan: what goes on for as long as it serves. It is ended in good order, which
        uvicorn would not do after a second signal."""
        super().__init__(config)
        self._closing = closing
        self._limits = limits
        self._lifespan = lifespan

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.is_ssl:
            # uvicorn names no limit, and Python's is a minute.
            loop = asyncio.get_running_loop()
            listening = partial(loop.create_server, ssl_handshake_timeout=self._limits.handshake_s)
            loop.create_server = listening  # type: ignore[method-assign]
        await self._lifespan.__aenter__()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().shutdown(sockets)
        finally:
            await self._lifespan.__aexit__(None, None, None)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._closing.set()


class EndsWithServer:
    """Middleware that tells a stream its reader is gone when the server is about to end, and
    completes it; what still reckons a second later is given up with 503."""

    def __init__(self, app: ASGIApp, closing: asyncio.Event) -> None:
        self._app = app
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def watch(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        answer = asyncio.ensure_future(
            run_until(self._closing.wait, self._app, scope, receive, watch)
        )
        if await self._is_given_up(answer):
            if not has_begun:
                await Response("the console ends", 503)(scope, receive, send)
            return
        # A client that left before all was sent gets no answer; that is no fault of hotset's.
        with suppress(ClientDisconnect):
            answer.result()

    async def _is_given_up(self, answer: asyncio.Future[None]) -> bool:
        """uvicorn would end it, too, but tells the user of each as of a fault."""
        end = asyncio.ensure_future(self._closing.wait())
        either: set[asyncio.Future[Any]] = {answer, end}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({answer}, timeout=_GRACE_S / 2)
            return not answer.done()
        finally:
            end.cancel()
            answer.cancel()

"""Responses that go on until their reader leaves, and are to end sooner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from starlette.types import ASGIApp, Message, Receive, Scope, Send


async def run_until(
    over: Callable[[], Coroutine[object, object, object]],
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Run an application that is told its reader is gone as soon as ``over`` returns; a response
    that it leaves unfinished then is completed."""
    end = asyncio.ensure_future(over())
    is_unfinished = False

    async def receive_once() -> Message:
        received = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({received, end}, return_when=asyncio.FIRST_COMPLETED)
            return received.result() if received.done() else {"type": "http.disconnect"}
        finally:
            received.cancel()

    async def watch(message: Message) -> None:
        nonlocal is_unfinished
        is_unfinished = message["type"] == "http.response.start" or message.get("more_body", False)
        await send(message)

    try:
        await app(scope, receive_once, watch)
        # What ends it may have ended by other ways than `heard`.
        await asyncio.sleep(0)
        if is_unfinished and end.done():
            await send({"type": "http.response.body", "body": b""})
    finally:
        end.cancel()

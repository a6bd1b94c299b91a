"""How the console's server ends: what still reckons then is given up, and is no fault."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope, Send

from hotset.console.serving import EndsWithServer

LONG_S = 600


def ended(asleep_s: float) -> list[Message]:
    """What is sent of a page that takes so long, while the server is about to end."""
    sent: list[Message] = []

    async def page(_scope: Scope, _receive: Receive, send: Send) -> None:
        await asyncio.sleep(asleep_s)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    async def receive() -> Message:
        await asyncio.sleep(LONG_S)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def end() -> None:
        closing = asyncio.Event()
        closing.set()
        scope = {"type": "http", "method": "GET", "headers": []}
        await EndsWithServer(page, closing)(scope, receive, send)

    asyncio.run(end())
    return sent


def test_what_still_reckons_at_the_end_is_given_up() -> None:
    start, body = ended(LONG_S)
    assert start["status"] == 503
    assert body["body"] == b"the console ends"


def test_what_is_nearly_done_is_answered() -> None:
    start, body = ended(0)
    assert (start["status"], body["body"]) == (200, b"done")

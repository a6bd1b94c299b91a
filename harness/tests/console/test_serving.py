"""How the console's server ends: what still reckons then is given up, and is no fault."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import closing
from pathlib import Path

from starlette.types import Message, Receive, Scope, Send

from hotset.console.serving import EndsWithServer
from tests.console_browser import served

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


def test_an_end_does_not_wait_for_a_machine_that_never_answers(tmp_path: Path) -> None:
    """It waited for as long as a connection may take to be made: 20 s."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        silent.settimeout(60)
        machine = f"ssh://root@127.0.0.1:{silent.getsockname()[1]}"
        with served(tmp_path, machine):
            one, _ = silent.accept()
            begun = time.monotonic()
        assert time.monotonic() - begun < 10
        one.close()

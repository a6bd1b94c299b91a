"""A server that takes connections and never says a word: whoever asks it waits until stopped."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager


@contextmanager
def silent_server() -> Iterator[str]:
    """Its DSN. Connections wait in the queue, unanswered."""
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield f"host=127.0.0.1 port={listening.getsockname()[1]} user=tester dbname=shop"

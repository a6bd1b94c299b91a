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
        # Not hotset's own limit of 10 s: on a busy computer a test takes longer than that.
        place = f"host=127.0.0.1 port={listening.getsockname()[1]}"
        yield f"{place} user=tester dbname=shop connect_timeout=600"

"""The console, with the limits of its connections that standard input's line names, as JSON.

``python -m tests.served_console`` says its port on standard output once it listens.
"""

from __future__ import annotations

import json
import socket
import sys

from hotset.console.app import create
from hotset.console.connections import Limits
from hotset.console.serving import serve
from hotset.console.web import Settings


def main() -> None:
    """Serve until it is ended."""
    limits = Limits(**json.loads(sys.stdin.readline()))
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(listener.getsockname()[1], flush=True)
        serve(create(Settings()), listener, None, None, limits)


if __name__ == "__main__":
    main()

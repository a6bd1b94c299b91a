"""The HTTP API, served by a process of its own for clients that are programs of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotset.api import tokens
from hotset.core.clock import wait_until
from hotset.core.machines.local import free_port
from hotset.core.rights import Right
from tests import powershell
from tests.cli_server import XDG

_PROGRAM = Path(__file__).with_name("served_api.py")


@dataclass(frozen=True)
class Served:
    """A server of the tests' own. ``environment`` is a client's, without the token."""

    uri: str
    token: str
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]


@contextmanager
def serving(
    environment: Mapping[str, str], port: int | None = None, password: Path | None = None
) -> Iterator[Served]:
    """Serve it with this environment, whose XDG folders it works in.

    :param port: None: one that is free.
    :param password: of a whole console, which records and has metrics as well; None: the API alone.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in set(XDG) & set(environment):
            patch.setenv(name, environment[name])
        token = tokens.create(f"tests-{os.urandom(4).hex()}", Right.ADMIN)
    port = port or free_port()
    program = [sys.executable, str(_PROGRAM), str(port)]
    if password is not None:
        program = [powershell.hotset(), "console", "--port", str(port)]
        environment = {**environment, "HOTSET_CONSOLE_PASSWORD_FILE": str(password)}
    with subprocess.Popen(program, env=environment) as server:
        try:
            wait_for_port(server, port)
            yield Served(f"http://127.0.0.1:{port}", token, environment, server)
        finally:
            server.terminate()


def wait_for_port(server: subprocess.Popen[Any], port: int) -> None:
    """Until a server answers, unless it ends."""

    def is_open() -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    answers = wait_until(is_open, 120, ended=lambda: server.poll() is not None)
    assert answers, f"no server at port {port}"

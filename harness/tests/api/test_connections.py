"""Whoever is slow, or many, does not keep others from the API: abuse cases on a served console."""

from __future__ import annotations

import ctypes
import json
import os
import select
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

from hotset.api import access, tokens
from hotset.console.connections import Limits
from hotset.core.clock import wait_until
from hotset.core.rights import Right
from tests.silent_server import silent_server

DESCRIPTION = "/api/v1/openapi.json"
LONG_S = 60.0


@contextmanager
def console(limits: Limits) -> Iterator[int]:
    """Its port."""
    with process_of_console(limits) as (_, port):
        yield port


@contextmanager
def process_of_console(limits: Limits) -> Iterator[tuple[int, int]]:
    """Its process and its port."""
    argv = [sys.executable, "-m", "tests.served_console"]
    with subprocess.Popen(
        argv, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            server.stdin.write(json.dumps(asdict(limits)) + "\n")
            server.stdin.flush()
            yield server.pid, int(server.stdout.readline())
        finally:
            server.terminate()
            server.wait(LONG_S)
        # Nobody fills the server's log.
        assert server.stderr.read() == ""


def connected(port: int, said: str = "") -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), timeout=LONG_S)
    line.sendall(said.encode())
    return line


def head(port: int, method: str = "GET", path: str = DESCRIPTION, more: str = "") -> str:
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{more}"


def heard(line: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    try:
        while part := line.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def answers(port: int) -> bool:
    url = f"http://127.0.0.1:{port}{DESCRIPTION}"
    return httpx.get(url, timeout=LONG_S).status_code == 200


def others_end(line: socket.socket, pid: int) -> socket.socket:
    """The socket of a process that accepted this connection, as a descriptor of ours."""
    process = os.pidfd_open(pid)
    try:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            if not stat.S_ISSOCK(file.stat().st_mode):
                continue
            copied = ctypes.CDLL(None).syscall(_PIDFD_GETFD, process, int(file.name), 0)
            if copied < 0:
                continue
            found = socket.socket(fileno=copied)
            with suppress(OSError):  # one that is not connected has no peer
                if found.getpeername() == line.getsockname():
                    return found
            found.close()
    finally:
        os.close(process)
    raise AssertionError("the connection was not accepted")


_PIDFD_GETFD = 438


def test_an_answer_does_not_wait_for_the_one_before_it_to_be_acknowledged() -> None:
    """An answer of two parts on a kept connection took 44 ms for the reader's acknowledgement."""
    with (
        process_of_console(Limits()) as (pid, port),
        connected(port, head(port) + "\r\n") as line,
    ):
        assert line.recv(1)
        with others_end(line, pid) as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_many_who_never_ask_keep_nobody_out() -> None:
    """Slow lines beyond the most take each other's places, the oldest first."""
    with console(Limits(connections=10, request_s=LONG_S)) as port, ExitStack() as stack:
        slow = [stack.enter_context(connected(port, head(port))) for _ in range(30)]
        assert answers(port)
        for line in slow[:20]:
            assert heard(line).startswith(b"HTTP/1.1 408 ")
        open_, _, _ = select.select(slow[22:], [], [], 0)
        assert open_ == []


@pytest.mark.night
@pytest.mark.parametrize("begins", ["", "head", "body", "answered"])
def test_a_request_has_to_come_whole_in_time(begins: str) -> None:
    """Though a bit of it comes again and again."""
    texts: dict[str, Callable[[int], str]] = {
        "": lambda _: "",
        "head": lambda port: head(port) + "X-Slow: ",
        "body": lambda port: head(
            port,
            "POST",
            "/api/v1/tpcc/check",
            f"Authorization: Bearer {tokens.create('slow', Right.ADMIN)}\r\n"
            "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n",
        ),
        # Refused before its body has come.
        "answered": lambda port: head(
            port, "POST", "/api/v1/tpcc/check", "Content-Length: 60000\r\n\r\n"
        ),
    }
    with console(Limits(request_s=2.0)) as port, connected(port, texts[begins](port)) as line:
        begun = time.monotonic()
        while begins == "answered" or not select.select([line], [], [], 0)[0]:
            assert time.monotonic() - begun < LONG_S, "it goes on"
            time.sleep(0.2)
            try:
                line.sendall(b" " if begins else b"")
            except (BrokenPipeError, ConnectionResetError):
                break
        said = heard(line)
    assert time.monotonic() - begun > 1.5
    if begins != "answered":
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"did not come whole in time" in said


@pytest.mark.night
def test_an_answer_that_nobody_takes_is_given_up() -> None:
    whole = "".join(head(0, more="\r\n") for _ in range(400)).replace("127.0.0.1:0", "127.0.0.1")
    with console(Limits(reader_s=1.0, request_s=LONG_S)) as port, socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", port))
        line.sendall(whole.encode())
        watched = select.poll()
        watched.register(line, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
        assert watched.poll(LONG_S * 1000), "it waits for ever"


@pytest.mark.night
def test_one_tokens_streams_keep_no_other_out() -> None:
    names = ("many", "other")
    many, other = (
        {"Authorization": f"Bearer {tokens.create(name, Right.ADMIN)}"} for name in names
    )
    with silent_server() as dsn, console(Limits(connections=access.AT_ONCE + 1)) as port:
        url = f"http://127.0.0.1:{port}/api/v1"
        limits = httpx.Limits(max_connections=None)
        with httpx.Client(base_url=url, timeout=LONG_S, limits=limits) as client:
            id_ = client.post("/tpcc/check", json={"dsn": dsn}, headers=other).json()["id"]
            with ExitStack() as stack:
                streams = [
                    stack.enter_context(client.stream("GET", f"/jobs/{id_}/events", headers=many))
                    for _ in range(access.AT_ONCE)
                ]
                assert {one.status_code for one in streams} == {200}
                refused = client.get("/jobs", headers=many)
                assert refused.status_code == 429
                assert "32 requests of token many are being answered" in refused.json()["detail"]
                assert client.get("/jobs", headers=other).status_code == 200
                # All places are taken by those that are being answered: one more is told so.
                with (
                    client.stream("GET", f"/jobs/{id_}/events", headers=other) as last,
                    connected(port) as line,
                ):
                    assert last.status_code == 200
                    assert heard(line).startswith(b"HTTP/1.1 503 ")
            freed = wait_until(
                lambda: client.get("/jobs", headers=many).status_code != 429, LONG_S, 0.1
            )
            assert freed, "their places were not freed"
            assert client.post(f"/jobs/{id_}/cancel", headers=other).status_code == 202

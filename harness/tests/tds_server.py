"""A SQL Server that takes log-ins, notes what they say, and refuses them.

MS-TDS 2.2.6.4 (LOGIN7), 2.2.6.5 (PRELOGIN); TLS goes in packets of PRELOGIN until it is agreed on
(2.2.6.5, "TDS 7.x"), or comes first of all (TDS 8.0, ``encrypt=strict``).

    python3 tds_server.py PORT FOLDER    # prints each log-in, for the walks of the packages
"""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Manner = Literal["", "hangs up", "resets", "resets after PRELOGIN", "TLS 1.0"]
_PRELOGIN, _LOGIN, _ANSWER = 0x12, 0x10, 0x04
_OFF, _ON, _NOT_SUPPORTED, _REQUIRED = range(4)
_TLS_RECORD = b"\x16"
_VERSION = bytes((16, 0, 0, 0, 0, 0))


def certificate(folder: Path, host: str) -> Path:
    """A certificate that a server of this name has signed itself; its key is beside it."""
    made = folder / f"{host}.pem"
    kind = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    name = ("-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}")
    to = ("-out", str(made), "-keyout", str(made.with_suffix(".key")))
    subprocess.run(["openssl", "req", *kind, *name, *to], check=True, capture_output=True)
    return made


@dataclass
class TdsServer:
    """
    :ivar manner: what it does before a log-in; nothing: it takes them.
    :ivar refusals: number and text of each error that a log-in is answered with.
    :ivar logins: user and password of each log-in, as the server read them.
    :ivar databases: the databases that they asked for.
    """

    port: int
    certificate: Path
    manner: Manner = ""
    refusals: tuple[tuple[int, str], ...] = ((18456, "Login failed."),)
    logins: list[tuple[str, str]] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)

    def dsn(self, *options: str, host: str = "localhost") -> str:
        query = "&".join(("encrypt=yes", *options))
        return f"sqlserver://sa@{host}:{self.port}/shop?{query}"


@contextmanager
def tds_server(certificate: Path, port: int = 0, manner: Manner = "") -> Iterator[TdsServer]:
    with closing(socket.create_server(("127.0.0.1", port))) as listening:
        server = TdsServer(listening.getsockname()[1], certificate, manner)
        threading.Thread(target=_serve, args=(listening, server), daemon=True).start()
        yield server


def _serve(listening: socket.socket, server: TdsServer) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    if server.manner == "TLS 1.0":
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
        context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(server.certificate, server.certificate.with_suffix(".key"))
    while True:
        try:
            peer, _ = listening.accept()
        except OSError:
            return
        peer.settimeout(30)
        with closing(peer), suppress(OSError, ssl.SSLError, EOFError, struct.error):
            _Session(peer, context, server).answer()


class _Session:
    """One connection."""

    def __init__(self, peer: socket.socket, context: ssl.SSLContext, server: TdsServer) -> None:
        self._peer, self._server = peer, server
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)

    def answer(self) -> None:
        first = self._peer.recv(1, socket.MSG_PEEK)
        if first in (b"", _TLS_RECORD):
            return  # nothing was said; encrypt=strict, which is TLS from the first byte on
        if first[0] != _PRELOGIN:  # TDS 7.0 and before know none, and no encryption
            self._server.logins.append(("", self._packet().hex()))
            return
        asked = self._encryption(self._packet())
        if "resets" in self._server.manner:  # what is not sent yet goes, and the peer is told so
            self._peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self._server.manner in ("hangs up", "resets"):
            return
        encrypted = asked in (_ON, _REQUIRED)
        # By its version a driver reads what comes later.
        head = struct.pack(">BHHBHHB", 0, 11, 6, 1, 17, 1, 0xFF)
        answer = head + _VERSION + bytes((_ON if encrypted else _NOT_SUPPORTED,))
        self._send(_ANSWER, answer)
        if self._server.manner == "resets after PRELOGIN":
            self._packet()
            return
        if encrypted:
            self._shake_hands()
        self._note(self._login(encrypted))
        said = b"".join(_error(*one) for one in self._server.refusals) + _DONE
        packet = struct.pack(">BBHHBB", _ANSWER, 1, len(said) + 8, 0, 1, 0) + said
        if encrypted:
            self._tls.write(packet)
            packet = self._out.read()
        self._peer.sendall(packet)

    def _login(self, encrypted: bool) -> bytes:
        if not encrypted:
            return self._packet()
        held = b""
        while len(held) < 8 or len(held) < struct.unpack(">H", held[2:4])[0]:
            try:
                held += self._tls.read(65536)
            except ssl.SSLWantReadError:
                self._in.write(self._received())
        return held[8:]

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._in.write(self._packet())
                continue
            except ssl.SSLError:
                self._flush()  # says what the peer lacks
                raise
            self._flush()
            return

    def _flush(self) -> None:
        if self._out.pending:
            self._send(_PRELOGIN, self._out.read())

    def _note(self, login: bytes) -> None:
        def text(at: int) -> bytes:
            start, length = struct.unpack_from("<HH", login, at)
            return login[start : start + 2 * length]

        clear = bytes((b >> 4 | b << 4 & 0xF0) for b in (one ^ 0xA5 for one in text(44)))
        self._server.logins.append((text(40).decode("utf-16-le"), clear.decode("utf-16-le")))
        self._server.databases.append(text(68).decode("utf-16-le"))

    @staticmethod
    def _encryption(prelogin: bytes) -> int:
        at = 0
        while prelogin[at] != 0xFF:
            token, start, _ = struct.unpack_from(">BHH", prelogin, at)
            if token == 1:
                return prelogin[start]
            at += 5
        return _NOT_SUPPORTED

    def _packet(self) -> bytes:
        """The data of one message."""
        whole, last = b"", 0
        while not last:
            head = self._exactly(8)
            last = head[1] & 1
            whole += self._exactly(struct.unpack(">H", head[2:4])[0] - 8)
        return whole

    def _send(self, kind: int, data: bytes) -> None:
        self._peer.sendall(struct.pack(">BBHHBB", kind, 1, len(data) + 8, 0, 1, 0) + data)

    def _exactly(self, count: int) -> bytes:
        held = b""
        while len(held) < count:
            held += self._received(count - len(held))
        return held

    def _received(self, at_most: int = 65536) -> bytes:
        got = self._peer.recv(at_most)
        if not got:
            raise EOFError
        return got


_DONE = struct.pack("<BHHQ", 0xFD, 2, 0, 0)


def _error(number: int, message: str) -> bytes:
    """ERROR (MS-TDS 2.2.7.10)."""
    text = message.encode("utf-16-le")
    body = struct.pack("<IBBH", number, 1, 14, len(message)) + text + b"\0\0" + struct.pack("<I", 1)
    return struct.pack("<BH", 0xAA, len(body)) + body


if __name__ == "__main__":
    with tds_server(certificate(Path(sys.argv[2]), "evil.example"), int(sys.argv[1])) as one:
        while True:
            time.sleep(0.1)
            while one.logins:
                print(*one.logins.pop(0), flush=True)

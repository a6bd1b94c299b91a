"""Why a server is not reached, by its first answers: drivers say it each in their own words, and
FreeTDS not at all. Nothing of a log-in is sent.

MS-TDS 2.2.6.5: PRELOGIN, in whose packets TLS is agreed on.
"""

from __future__ import annotations

import socket
import ssl
import struct
from contextlib import closing

from .address import Address
from .freetds import is_checked

_PRELOGIN, _ANSWER = 0x12, 0x04
_OFF, _ON, _NOT_SUPPORTED = range(3)
_HEAD = struct.Struct(">BBHHBB")
_CONNECT_S, _ANSWER_S = 2, 5
_WRONG_NAME = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH."""


def obstacle(database: Address) -> str | None:
    """Return the cause that nobody is let in, and the way out; None where none is found."""
    try:
        peer = socket.create_connection((database.host, database.port), timeout=_CONNECT_S)
    except OSError as error:
        return error.strerror or str(error)
    with closing(peer):
        if database.encrypt == "strict":  # TLS comes first
            return None
        peer.settimeout(_ANSWER_S)
        try:
            encryption = _greet(peer, _ON if is_checked(database) or database.trust else _OFF)
        except (OSError, EOFError, ValueError, struct.error):
            return (
                f"the DSN's port {database.port} answers, but not as SQL Server does: another"
                " program's, or a server that takes no more connections. SQL Server Configuration"
                " Manager shows the server's port under TCP/IP"
            )
        return None if encryption == _NOT_SUPPORTED else _encrypt(peer, database)


def _greet(peer: socket.socket, encryption: int) -> int:
    """Say hello; returns what the server makes of encryption.

    :raises ValueError: it speaks something else.
    """
    head = struct.pack(">BHHBHHB", 0, 11, 6, 1, 17, 1, 0xFF)  # VERSION, ENCRYPTION, no more
    _send(peer, head + bytes(6) + bytes((encryption,)))
    answer = _packet(peer, _ANSWER)
    for at in range(0, len(answer), 5):
        token, start = struct.unpack_from(">BH", answer, at)
        if token == 1:
            return int(answer[start])
    raise ValueError("no word of encryption")


def _encrypt(peer: socket.socket, database: Address) -> str | None:
    context = ssl.create_default_context()
    # As the drivers have it; Debian's Python takes what OpenSSL takes.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not is_checked(database):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, sent, server_hostname=database.host)
    try:
        while True:
            try:
                tls.do_handshake()
                return None
            except ssl.SSLWantReadError:
                _send(peer, sent.read())
                received.write(_packet(peer, _PRELOGIN, _ANSWER))
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _WRONG_NAME:
            return (
                f"the server's certificate is another's: {error.verify_message} Write the host in"
                " the DSN as its certificate has it; trust=yes takes any certificate"
            )
        return (
            f"the server's certificate is not trusted: {error.verify_message}. If you trust this"
            " server's own certificate, add trust=yes to the DSN, or have the system trust it"
            " (update-ca-certificates)"
        )
    except ssl.SSLError as error:
        why = (error.reason or str(error)).replace("_", " ").lower()
        return f"the server does not take TLS 1.2 or later ({why}): update the server"
    except (OSError, EOFError, ValueError):
        return (
            "the server closed the connection when encryption was agreed on, before the log-in: its"
            " errorlog says why (it may have no TLS 1.2)"
        )


def _send(peer: socket.socket, data: bytes) -> None:
    peer.sendall(_HEAD.pack(_PRELOGIN, 1, _HEAD.size + len(data), 0, 1, 0) + data)


def _packet(peer: socket.socket, *kinds: int) -> bytes:
    """The data of one packet."""
    kind, _, size, *_ = _HEAD.unpack(_exactly(peer, _HEAD.size))
    if kind not in kinds:
        raise ValueError(f"a packet of kind {kind}")
    return _exactly(peer, size - _HEAD.size)


def _exactly(peer: socket.socket, count: int) -> bytes:
    held = b""
    while len(held) < count:
        got = peer.recv(count - len(held))
        if not got:
            raise EOFError
        held += got
    return held

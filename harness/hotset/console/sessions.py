"""Who is logged in, and who tried too often. Both live in the console's memory alone."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a session lasts, in seconds, and how many wrong passwords may be tried."""

    idle_s: float = 3600
    absolute_s: float = 12 * 3600
    wrong_passwords: int = 5
    wait_s: float = 60


@dataclass(slots=True)
class Session:
    """A browser that is logged in; ``credential`` is the password's hash at that time."""

    credential: str
    begun: float
    seen: float


class Sessions:
    """The browsers that are logged in, by the hash of their cookie."""

    def __init__(self, limits: Limits, clock: Clock = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._open: dict[bytes, Session] = {}

    def begin(self, credential: str) -> str:
        """A new session; returns the value of its cookie."""
        self._forget_expired()
        cookie, now = secrets.token_urlsafe(32), self._clock()
        self._open[_digest(cookie)] = Session(credential, now, now)
        return cookie

    def alive(self, cookie: str | None, credential: str | None, touch: bool = False) -> bool:
        """True if the cookie is that of a session that has not expired.

        :param credential: the password's hash now: a new password ends all sessions.
        :param touch: this is something the user did, so the idle time begins again.
        """
        session = self._open.get(_digest(cookie)) if cookie else None
        if session is None:
            return False
        now = self._clock()
        if self._is_expired(session, now) or session.credential != credential:
            del self._open[_digest(cookie or "")]
            return False
        if touch:
            session.seen = now
        return True

    def end(self, cookie: str) -> None:
        self._open.pop(_digest(cookie), None)

    def token(self, cookie: str) -> str:
        """The token that the forms of this cookie's browser carry: no other site can know it."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()

    def token_fits(self, cookie: str | None, token: str | None) -> bool:
        return bool(cookie and token) and hmac.compare_digest(
            self.token(cookie or "").encode(), (token or "").encode()
        )

    def _is_expired(self, session: Session, now: float) -> bool:
        limits = self._limits
        return now - session.seen > limits.idle_s or now - session.begun > limits.absolute_s

    def _forget_expired(self) -> None:
        now = self._clock()
        self._open = {
            key: session
            for key, session in self._open.items()
            if not self._is_expired(session, now)
        }


class Attempts:
    """Wrong passwords, counted by who tries: after so many in a row each further one costs a wait,
    which doubles up to an hour.

    Who tries is a browser that was logged in here before (:func:`find_browser`), whatever its
    address; and otherwise an address, of IPv6 the /64 that one subscriber has. Who
    guesses keeps out only strangers at the same address, and not the browser that the administrator
    uses, though all of a tunnel's users have one address.
    """

    _WHO = 10_000
    _WAIT_MAX_S = 3600.0

    def __init__(self, limits: Limits, clock: Clock = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait_s(self, who: str) -> int:
        """Seconds until they may try again; 0: now."""
        count, last = self._wrong.get(who, (0, 0.0))
        beyond = count - self._limits.wrong_passwords
        if beyond < 0:
            return 0
        wait = min(self._WAIT_MAX_S, self._limits.wait_s * 2.0 ** min(beyond, 20))
        return max(0, math.ceil(last + wait - self._clock()))

    def record_failure(self, who: str) -> None:
        count, _ = self._wrong.pop(who, (0, 0.0))
        self._wrong[who] = (count + 1, self._clock())
        while len(self._wrong) > self._WHO:
            self._wrong.popitem(last=False)

    def record_success(self, who: str) -> None:
        self._wrong.pop(who, None)


def who_tries(address: str, browser: str | None) -> str:
    """Under what attempts are counted.

    :param browser: of :func:`find_browser`, None of a stranger.

    >>> who_tries("2001:db8:1:2:3::4", None), who_tries("10.0.0.7", None)
    ('2001:db8:1:2::/64', '10.0.0.7')
    """
    if browser is not None:
        return f"browser {browser}"
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


def mark_browser(credential: str) -> str:
    """A cookie's value for a browser that has logged in.

    :param credential: the password's hash, which is secret: with a new password it is worth
        nothing any more.
    """
    name = secrets.token_urlsafe(16)
    return f"{name}.{_seal(name, credential)}"


def find_browser(cookie: str | None, credential: str | None) -> str | None:
    """The browser that a cookie marks; None if it is none of ours."""
    name, _, seal = (cookie or "").partition(".")
    if not name or credential is None:
        return None
    return name if hmac.compare_digest(_seal(name, credential), seal) else None


def _seal(name: str, credential: str) -> str:
    return hmac.new(credential.encode(), f"browser {name}".encode(), hashlib.sha256).hexdigest()


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()

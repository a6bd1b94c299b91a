"""Who may: a request carries ``Authorization: Bearer TOKEN``."""

from __future__ import annotations

import asyncio
from collections import Counter

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from hotset.core.errors import HotsetError
from hotset.core.rights import Right
from hotset.operations import strangers
from hotset.operations.audit import Caller

from . import tokens
from .endless import run_until
from .problems import ProblemResponse

_LOOK_S = 1.0
"""How often a token is looked at again while its request is being answered."""
AT_ONCE = 32
"""Requests of one token that are being answered, those included that never end by themselves."""
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="hotset"'}
_REMEDY = "`hotset console token create NAME` makes one"


class RequireToken:
    """Middleware that lets token holders through, as long as the token is valid."""

    def __init__(
        self, app: ASGIApp, public: frozenset[str] = frozenset(), needs: Right = Right.READ
    ) -> None:
        """
        :param public: paths for all, below where the application is mounted.
        :param needs: the right that a token must have for any of the others.
        """
        self._app = app
        self._public = public
        self._needs = needs
        self._answering: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} is served here")
        path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
        if path in self._public:
            await self._app(scope, receive, send)
            return
        try:
            await self._require_known(scope, receive, send)
        except tokens.TokenError as error:
            # Whose they are and what they may is not known here: nobody is let in.
            await ProblemResponse(503, str(error))(scope, receive, send)

    async def _require_known(self, scope: Scope, receive: Receive, send: Send) -> None:
        """:raises TokenError: the tokens cannot be read."""
        scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            message = f"a token is missing: send `Authorization: Bearer TOKEN`; {_REMEDY}"
            strangers.note(address_of(scope), "no token")
        elif (token := tokens.find(text.strip())) is None:
            message = f"the token is not known here, has expired or was revoked; {_REMEDY}"
            strangers.note(address_of(scope), "unknown token")
        else:
            tokens.note_use(token)
            if not token.right.includes(self._needs):
                message = f"this needs the right '{self._needs}', and yours is '{token.right}'"
                await ProblemResponse(403, message)(scope, receive, send)
                return
            caller = Caller(f"token {token.name}", token.right, address_of(scope))
            scope.setdefault("state", {})["caller"] = caller
            await self._one_of_few(text.strip(), caller.name, scope, receive, send)
            return
        await ProblemResponse(401, message, headers=_CHALLENGE)(scope, receive, send)

    async def _one_of_few(
        self, text: str, name: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Have a request answered, unless too many of its token's are."""
        if self._answering[name] >= AT_ONCE:
            message = f"{AT_ONCE} requests of {name} are being answered: wait until one has ended"
            await ProblemResponse(429, message, headers={"Retry-After": "1"})(scope, receive, send)
            return
        self._answering[name] += 1
        try:
            await run_until(lambda: _forget_revoked(text), self._app, scope, receive, send)
        finally:
            self._answering[name] -= 1


async def _forget_revoked(text: str) -> None:
    """Return once a token is not taken any more."""
    while True:
        await asyncio.sleep(_LOOK_S)
        try:
            if await run_in_threadpool(tokens.find, text) is None:
                return
        except (HotsetError, OSError, ValueError):
            return  # nobody knows whether it still is one


def address_of(scope: Scope) -> str:
    """Where a request comes from; empty for a test's."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def caller(request: Request) -> Caller:
    """Who sent a request, and may do what."""
    caller: Caller = request.state.caller
    return caller

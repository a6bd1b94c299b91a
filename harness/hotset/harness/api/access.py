"""Who may: a request carries ``Authorization: Bearer TOKEN``."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from hotset.harness.api import tokens
from hotset.harness.api.problems import ProblemResponse

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="hotset"'}
_REMEDY = "`hotset console token create NAME` makes one"


class RequireToken:
    """Middleware that lets through whoever holds a token."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} is served here")
        scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            said = f"a token is missing: send `Authorization: Bearer TOKEN`; {_REMEDY}"
        elif tokens.holder(text.strip()) is None:
            said = f"the token is not known here, or was revoked; {_REMEDY}"
        else:
            await self._app(scope, receive, send)
            return
        await ProblemResponse(401, said, headers=_CHALLENGE)(scope, receive, send)

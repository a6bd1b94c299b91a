"""Who asks: the holder of the token, and the server that was reached."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hotset import __version__

from . import values
from .access import caller
from .schemas import Holder

router = APIRouter(tags=["token"])


@router.get("/token", operation_id="getToken", response_model=Holder)
async def show_holder(request: Request) -> Response:
    """The token's name and right, and the version of hotset that answers."""
    values.only(request.query_params)
    who = caller(request)
    return JSONResponse(
        {
            "schema_version": 1,
            "name": who.name.removeprefix("token "),
            "right": who.right.value,
            "version": __version__,
        }
    )

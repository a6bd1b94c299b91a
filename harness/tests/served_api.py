"""``python served_api.py PORT``: the HTTP API on loopback, for clients that are programs of their
own."""

from __future__ import annotations

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from hotset.api import app

if __name__ == "__main__":
    served = Starlette(routes=[Mount("/api/v1", app.create())])
    uvicorn.run(served, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")

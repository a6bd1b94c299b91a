"""The console as one application: its pages, and the HTTP API beside them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from hotset.api import app as api
from hotset.core import clock
from hotset.core.machines import ssh
from hotset.monitoring.history import opening
from hotset.monitoring.history.observation import Observation
from hotset.monitoring.history.recorder import Recorder
from hotset.operations.jobs.store import JobConflictError, NoSuchJobError
from hotset.reports.archive import NoSuchRunError

from .backend import BackendError
from .hosts import KnownHosts
from .pages import (
    audit,
    benchmarks,
    disks,
    flash,
    history,
    hits,
    jobs,
    lab,
    login,
    overview,
    powershell,
    runs,
    sizing,
    warmup,
)
from .pages.reports import health, heat
from .sampling.happenings import Happenings
from .sampling.reader import Reader, Sample
from .sampling.sampler import Sampler
from .sessions import Attempts, Sessions
from .web import STATIC, Console, SecureHeaders, Settings, problem

_log = logging.getLogger("hotset.console")


def create(settings: Settings) -> Starlette:
    """The application for one machine; it holds no state but who is logged in, and records what it
    reads for as long as it runs."""
    recorder = Recorder(opening.path_of(settings.machine))
    sampler = _sampler(settings.machine, recorder)

    @asynccontextmanager
    async def sampling(_: Starlette) -> AsyncIterator[None]:
        sampler.start()
        try:
            yield
        finally:
            # A connection that is being made would be waited for as long as that may take.
            ssh.give_up()
            await sampler.stop()

    app = Starlette(
        routes=_routes(),
        middleware=[
            Middleware(SecureHeaders, tls=settings.tls),
            Middleware(KnownHosts, public_name=settings.public_name),
            Middleware(GZipMiddleware, minimum_size=1024),
        ],
        exception_handlers={
            HTTPException: _refuse,
            NoSuchRunError: _no_such,
            NoSuchJobError: _no_such,
            JobConflictError: _conflict,
            BackendError: _conflict,
        },
        lifespan=sampling,
    )
    app.state.console = Console(
        settings,
        Sessions(settings.limits),
        Attempts(settings.limits),
        sampler,
        recorder,
    )
    return app


def _routes() -> list[BaseRoute]:
    return [
        Mount("/api/v1", api.create()),
        api.metrics_route(),
        Route("/healthz", _alive),
        Mount("/static", _Static(directory=STATIC)),
        *login.ROUTES,
        *overview.ROUTES,
        *health.ROUTES,
        *history.ROUTES,
        *flash.ROUTES,
        *disks.ROUTES,
        *warmup.ROUTES,
        *hits.ROUTES,
        *heat.ROUTES,
        *lab.ROUTES,
        *benchmarks.ROUTES,
        *jobs.ROUTES,
        *runs.ROUTES,
        *sizing.ROUTES,
        *audit.ROUTES,
        *powershell.ROUTES,
    ]


def _sampler(machine: str, recorder: Recorder) -> Sampler:
    """Reads the machine, and has each reading recorded with what happened besides."""
    reader, happenings = Reader(machine), Happenings(machine)

    def read() -> Sample:
        sample = reader.read()
        try:
            recorder.take(sample.observation, happenings.latest())
        except Exception:
            # Those who watch get what was read, whatever becomes of the record.
            _log.exception("a reading was not recorded")
        return sample

    def close() -> None:
        try:
            recorder.close(Observation(clock.moment()))
        finally:
            reader.close()

    return Sampler(read, close, partial(overview.frame, machine=machine))


class _Static(StaticFiles):
    """Files that a browser may keep for an hour; then it asks whether they changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "public, max-age=3600"
        return response


async def _alive(request: Request) -> Response:  # noqa: ARG001
    """For monitors of the process: it answers, whatever happens to its machine."""
    return PlainTextResponse("ok\n", headers={"Cache-Control": "no-store"})


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return problem(request, 404, "There is no such page", "The links above lead to all.")
    return problem(request, error.status_code, "That cannot be done so", error.detail)


async def _no_such(request: Request, error: Exception) -> Response:
    return problem(request, 404, "There is no such thing", str(error))


async def _conflict(request: Request, error: Exception) -> Response:
    return problem(request, 409, "That does not work now", str(error))

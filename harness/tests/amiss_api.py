"""A hotset server that goes wrong in the middle of an answer, and one with 10,000 jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from hotset import __version__
from hotset.operations.jobs import store

JOBS = 10_000
_JOB = {
    "verb": "warmup run",
    "values": {"disk": "shop"},
    "machine": "",
    "started": "2026-11-21T08:30:00+00:00",
    "ended": "2026-11-21T08:31:00+00:00",
    "state": "done",
    "code": 0,
    "progress": "4 of 4 GiB",
    **dict.fromkeys(("done", "total", "unit", "eta_s")),
    "messages": ["read 4 GiB", "wrote nothing"],
}


class _Amiss(BaseHTTPRequestHandler):
    """Goes wrong as the job's id says, or the disk of a request: ``silent`` sends nothing,
    ``stuck`` half an answer, ``cut`` ends there, ``half`` does not say how long it would have been,
    and ``failed`` is half of a problem."""

    asked: Event
    ended: Event

    def do_GET(self) -> None:
        self._answer(self.path.partition("?")[0].rpartition("/")[2])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(body.get("disk", ""))

    def _answer(self, how: str) -> None:
        known = {"schema_version": store.SCHEMA_VERSION}
        if how == "token":
            self._send({**known, "version": __version__, "right": "operate"})
        elif how == "jobs":
            jobs = [{"id": f"20261121-0830-{one:05}", **_JOB} for one in range(JOBS)]
            self._send({**known, "jobs": jobs})
        elif how == "silent":
            self.asked.set()
            self.ended.wait()
        else:
            self._break_off(how)

    def _send(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _break_off(self, how: str) -> None:
        self.send_response(500 if how == "failed" else 200)
        if how not in {"half", "failed"}:
            self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"type": "urn:hotset:problem", "id": "')
        self.wfile.flush()
        if how == "stuck":
            self.asked.set()
            self.ended.wait()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def amiss() -> Iterator[tuple[str, Event]]:
    """Serve it; its address, and what is set once it lets somebody wait."""
    handler = type("Amiss", (_Amiss,), {"asked": Event(), "ended": Event()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", handler.asked
        finally:
            handler.ended.set()
            server.shutdown()
            thread.join()

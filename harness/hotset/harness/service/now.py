"""A verb that answers at once, run as a child process: never in the server's own loop."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from hotset.harness.cli.codes import FAILED
from hotset.harness.service import events, verbs
from hotset.harness.service.verbs import Call, Words

PROGRAM = (sys.executable, "-m", "hotset.harness.service.child")
AT_ONCE = 4
_LONGEST_S = 300.0
_OPTION = re.compile(r"--([a-z-]+)[ :=]|(CARD|DISK|JOB|RUN|TARGET) '")
# A semaphore belongs to one loop; a server has one.
_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class VerbFailed(Exception):
    """A verb that ended with an exit code other than 0.

    :ivar code: as `hotset.harness.cli.codes` lists them.
    :ivar detail: its one-line message.
    :ivar field: the field it refuses, where it said so.
    :ivar failure: the name of the kind of failure, such as ``NoSuchRunError``; empty if unknown.
    """

    def __init__(self, code: int, detail: str, field: str | None = None, failure: str = "") -> None:
        super().__init__(detail)
        self.code, self.detail, self.field, self.failure = code, detail, field, failure


async def run_now(words: Words, values: Mapping[str, Any], strict: bool = True) -> Any:  # noqa: ANN401 - what the verb prints
    """What a reading verb answers, as JSON has it; ``{"lines": […]}`` of one that prints lines.

    :raises UnknownVerbError: there is none of that name.
    :raises RefusedError: it does not take these values.
    :raises VerbFailed: it ended with a code other than 0.
    """
    verb = verbs.find(words)
    text = await text_of(verb.call(values, strict))
    return json.loads(text) if verb.prints_json else {"lines": text.splitlines()}


async def text_of(call: Call) -> str:
    """What a verb prints, also where its code tells something of what it prints (a disk that has
    failed, a computer that lacks something). At most four at once; the others wait.

    :raises VerbFailed: it ended with a code other than 0 and without an answer.
    """
    async with _rooms.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
        code, out, err = await _run(call)
    if code == 0 or (call.verb.prints_json and out.strip()):
        return out.decode()
    failed = failure(code, events.parse(err))
    if failed.failure == "CardError" and failed.field is None and "disk" in call.values:
        detail = f"disk {call.values['disk']!r}: {failed.detail}"
        raise VerbFailed(code, detail, "disk", failed.failure)
    raise failed


async def _run(call: Call) -> tuple[int, bytes, bytes]:
    """Exit code, standard output and standard error."""
    child = await asyncio.create_subprocess_exec(
        *PROGRAM, *call.argv, env=call.environment, start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_LONGEST_S):
            out, err = await child.communicate()
    except TimeoutError:
        raise VerbFailed(FAILED, f"`hotset {call.verb.name}` gave no answer within"
                         f" {_LONGEST_S:g} s") from None  # fmt: skip
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
    return child.returncode or 0, out, err


def failure(code: int, said: list[events.Event]) -> VerbFailed:
    """What a verb's last words come to."""
    errors = [event for event in said if event.kind == "error"]
    if errors:
        first, text = errors[0], " ".join(event.text.strip() for event in errors)
        return VerbFailed(code, text, first.field or _option_in(text), first.failure or "")
    return VerbFailed(code, said[-1].text if said else f"it ended with code {code}")


def _option_in(text: str) -> str | None:
    """The field that a message begins with: ``--machine 'cloud': …``, ``DISK 'shop' …``."""
    found = _OPTION.match(text)
    return (found[1] or found[2]).lower().replace("-", "_") if found else None

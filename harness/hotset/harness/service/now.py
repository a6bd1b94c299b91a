"""A verb that answers at once, run as a child process: never in the server's own loop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hotset.harness.cli.codes import FAILED
from hotset.harness.service import events, verbs
from hotset.harness.service.verbs import Call, Words

PROGRAM = (sys.executable, "-m", "hotset.harness.service.child")
_LONGEST_S = 300.0


class VerbFailed(Exception):
    """A verb that ended with an exit code other than 0.

    :ivar code: as `hotset.harness.cli.codes` lists them.
    :ivar detail: its one-line message.
    :ivar field: the field it refuses, where it said so.
    """

    def __init__(self, code: int, detail: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.code, self.detail, self.field = code, detail, field


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
    """What a verb prints. Raises VerbFailed."""
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
    if child.returncode:
        raise failure(child.returncode, events.parse(err))
    return out.decode()


def failure(code: int, said: list[events.Event]) -> VerbFailed:
    """What a verb's last words come to."""
    errors = [event for event in said if event.kind == "error"]
    if errors:
        field = next((event.field for event in errors if event.field), None)
        return VerbFailed(code, " ".join(event.text.strip() for event in errors), field)
    return VerbFailed(code, said[-1].text if said else f"it ended with code {code}")

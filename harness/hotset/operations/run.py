"""Operations for callers that are not on this computer's command line: the API and the console."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hotset.core.errors import ForbiddenError, HotsetError, RequestError
from hotset.core.operation import Context, Kind, Operation, Request
from hotset.core.record import Result
from hotset.core.rights import Names, Right
from hotset.databases.connect import check_dsn
from hotset.operations import table

from . import audit, remote, room
from .audit import ITSELF, Caller
from .jobs import store
from .jobs.store import Job

PROGRAM = "hotset.operations.child"


QUERIES_AT_ONCE = 8
"""Limit for one caller, in this process: some wait for minutes, and others want an answer, too."""
_counting = threading.Lock()
_answering: Counter[str] = Counter()


class BusyCallerError(HotsetError):
    """A caller asks for more at once than it may."""

    http_status = 429


def answer(
    name: str, values: Mapping[str, Any], strict: bool = True, caller: Caller = ITSELF
) -> Result:
    """The result of a query, in this process.

    :param strict: types as JSON has them, not as a URL or a form.
    :raises ForbiddenError: the caller has not the right to.
    :raises HotsetError: there is none of that name, it refuses these values, or it failed.
    """
    operation = table.find(name)
    if operation.kind is not Kind.QUERY:
        raise RequestError(f"{name} is a job: start it")
    request = _request(operation, values, strict, caller)
    with _few(caller), audit.doing(caller, operation, request):
        return operation.function(request, Context(require_files=remote.require_files))


def rehearse(name: str, values: Mapping[str, Any], caller: Caller = ITSELF) -> None:
    """A job's dry run, in this process: what the job would refuse before it changes anything.

    :raises ForbiddenError: the caller has not the right to.
    :raises HotsetError: it refuses these values, or what they name.
    """
    operation = table.find(name)
    request = _request(operation, {**values, "dry_run": True, "yes": True}, False, caller)
    with _few(caller):
        operation.function(request, Context(require_files=remote.require_files))


def start(
    name: str, values: Mapping[str, Any], strict: bool = True, caller: Caller = ITSELF
) -> Job:
    """Start an operation as a job.

    :raises ForbiddenError: the caller has not the right to.
    :raises HotsetError: there is none of that name, or it refuses these values.
    :raises JobConflictError: another job has the same disk, database or lab.
    """
    operation = table.find(name)
    if operation.kind is not Kind.JOB:
        raise RequestError(f"{name} answers at once: it is not a job")
    request = _request(operation, values, strict, caller)
    if room.makes_files(operation.name, dict(request)):
        room.require(operation.fields, dict(request))
    given = audit.values_of(request)
    secret = getattr(request, "password", None)
    whole = given if secret is None else {**given, "password": secret.get_secret_value()}
    task = store.Task(
        operation.words, given, getattr(request, "machine", ""), operation.lock(request)
    )

    def keep(id_: str) -> None:
        if audit.counts(operation, request):
            audit.begin(caller, name, given, id_=id_)

    return store.start(task, PROGRAM, json.dumps({"operation": name, "request": whole}), keep)


@contextmanager
def _few(caller: Caller) -> Iterator[None]:
    """:raises BusyCallerError: so many queries of the same caller are being answered."""
    with _counting:
        if _answering[caller.name] >= QUERIES_AT_ONCE:
            raise BusyCallerError(
                f"{QUERIES_AT_ONCE} queries of {caller.name} are in progress: wait for one"
            )
        _answering[caller.name] += 1
    try:
        yield
    finally:
        with _counting:
            _answering[caller.name] -= 1


def require(right: Right, needed: Right, what: str) -> None:
    """:raises ForbiddenError: the right does not include the one that is needed."""
    if not right.includes(needed):
        raise ForbiddenError(
            f"{what} needs the right '{needed}', and yours is '{right}': use a token that has it"
        )


def _request(operation: Operation, values: Mapping[str, Any], strict: bool, caller: Caller) -> Any:  # noqa: ANN401 - its own
    """Check what must be known before anything is kept or shown.

    A refusal is kept without the values, which are unchecked.
    """
    try:
        return _check_request(operation, values, strict, caller.right)
    except ForbiddenError as error:
        audit.begin(caller, operation.name, {}, "refused", str(error))
        raise


def _check_request(
    operation: Operation, values: Mapping[str, Any], strict: bool, right: Right
) -> Request:
    require(right, operation.right, operation.name)
    if (
        "machine" in operation.fields
        and "machine" not in values
        and (own := os.environ.get(remote.MACHINE_VARIABLE))
    ):
        values = {**values, "machine": own}
    request = operation.parse_remote(values, strict)
    _check(operation, request, right)
    # Only words that may be used lead to a record; what it says is looked at as they were.
    request = operation.stored(request)
    _check(operation, request, right)
    return request


def _check(operation: Operation, request: Request, right: Right) -> None:
    """:raises ForbiddenError: the caller has not the right to this, or may not name it."""
    require(right, operation.right_for(dict(request)), operation.name)
    operation.require_confirmed(request)
    engine: Any = getattr(request, "engine", "postgres")
    if isinstance(dsn := getattr(request, "dsn", None), str):
        check_dsn(engine, dsn)
    field, machine = operation.fields.get("machine"), getattr(request, "machine", None)
    if field is not None and machine is not None and remote.mark_of(field) is Names.MACHINE:
        _check_machine(machine)
    remote.require(operation.fields, dict(request), engine)


def _check_machine(name: str) -> None:
    """:raises MachineNameError: not of the form of a machine's name."""
    if name not in remote.OF_THIS_COMPUTER:
        from hotset.core.machines import names as connect

        connect.account(name)

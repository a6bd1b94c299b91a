"""Commands of the command line, made from the table of operations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer.core import TyperCommand

from hotset.core.errors import DECLINED, HotsetError, Remedy, RequestError, option
from hotset.core.extras import Extra, is_offered
from hotset.core.operation import Cli, Context, FieldKind, Operation, OutputError
from hotset.core.record import Result

from .options import (
    DiskOption,
    Format,
    FormatOption,
    PasswordFileOption,
    QuietOption,
    asking_here,
    one_disk,
    password_of,
    screen,
)

_PASSWORD_FILE = "password_file"  # noqa: S105 - an option's name
_DISK_OPTION = "disk_"


def add(app: typer.Typer, operation: Operation) -> None:
    """Add an operation as a command, named by its last word."""
    fields = operation.request.model_fields
    names = _by_option(operation) or any(marks(field).candidates for field in fields.values())
    cls = _Naming if names else None
    app.command(operation.words[-1], cls=cls)(command(operation))


def command(operation: Operation) -> Callable[..., None]:
    """A function with the signature that typer makes options of."""

    def run(**given: Any) -> None:  # noqa: ANN401 - what typer parsed
        execute(operation, given)

    parameters = list(_parameters(operation))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = _plain(operation.help)
    return run


def execute(operation: Operation, given: dict[str, Any]) -> None:
    """Run it and print its result.

    :raises HotsetError: as the operation does, or what its result amounts to.
    """
    from hotset.core.progress import Reporter
    from hotset.operations import audit

    form = given.pop("format_", None)
    quiet = given.pop("quiet_", False)
    values = values_of(operation, given)
    _require_named(operation, values)
    request = operation.parse(values, strict=False)
    if not _confirm(operation, request):
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(DECLINED)
    context = Context(Reporter(quiet), lambda text: typer.echo(text, err=True), ask_for_name)
    with asking_here(), audit.doing(audit.on_command_line(), operation, request):
        result = operation.function(request, context)
        try:
            show(result, form or Format.TABLE)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(Path("standard output"), error) from None
        context.outcome(result)


class _Naming(TyperCommand):
    """A command that says itself which names there are, where the one it needs is left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own
        try:
            return super().parse_args(ctx, list(args))
        except typer.BadParameter as missing:
            # typer shows no name of the one that says that nothing was given.
            if type(missing) is typer.BadParameter or missing.param is None:
                raise
            missing.param.required = False
            try:
                return super().parse_args(ctx, args)
            finally:
                missing.param.required = True


def _require_named(operation: Operation, values: dict[str, Any]) -> None:
    """
    :raises RequestError: it needs a name and has none; says which there are and what to type.
    """
    for name, field in operation.request.model_fields.items():
        list_names = marks(field).candidates
        if name in values or not (list_names or (name == "disk" and field.is_required())):
            continue
        if list_names is None:
            raise RequestError(f"{operation.name} needs a name for the disk", field=name)
        defaults = {other: about.default for other, about in operation.request.model_fields.items()}
        more = {other: value for other, value in values.items() if value != defaults[other]}
        needed = f"{operation.name} needs the name of the {name}"
        try:
            names = list_names(str(values.get("machine", "local")))
        except HotsetError as error:
            text = f"{needed}; which there are is not known: {error}"
            raise RequestError(text, field=name) from error
        raise RequestError(
            f"{needed}: {', '.join(names)}" if names else f"{needed}; there is none",
            *(
                Remedy(f"{operation.words[-1]} {choice}", operation.name, {name: choice, **more})
                for choice in names
            ),
            field=name,
        )


def _confirm(operation: Operation, request: Any) -> bool:  # noqa: ANN401 - its own request
    """
    :raises RequestError: the question has no answer, as in a script.
    """
    if operation.question is None or not operation.asked(request) or getattr(request, "yes", False):
        return True
    question = operation.question(request)
    if question is None:
        return True
    typer.echo(f"{question} [y/N]: ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer:
        typer.echo(err=True)
        raise RequestError(
            "nothing was changed: the question had no answer",
            Remedy("do it without asking", parameters={"yes": True}),
        )
    return answer.strip().lower() in ("y", "yes")


def ask_for_name(name: str, what: str) -> None:
    """On a terminal, have the name typed of what is about to be overwritten.

    :raises typer.Exit: another name, or none, was typed.
    """
    if not sys.stdin.isatty():
        return
    typer.echo(f"to be overwritten: {what}", err=True)
    typer.echo(f"type {name} to go on: ", nl=False, err=True)
    if sys.stdin.readline().strip() != name:
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(DECLINED)


def show(result: Result, form: Format) -> None:
    """Print a result to standard output."""
    import json

    from hotset.core.progress import to_stdout

    if form is Format.JSON:
        to_stdout(json.dumps(result.document(), indent=1))
    elif form is Format.CSV:
        to_stdout(result.csv())
    else:
        result.show(screen())


def values_of(operation: Operation, given: dict[str, Any]) -> dict[str, Any]:
    """Return the given values by the request's fields, without those left out."""
    values = dict(given)
    for name, field in operation.request.model_fields.items():
        if FieldKind.from_field(field).secret:
            values[name] = password_of(values.pop(_PASSWORD_FILE, None))
    values["disk"] = one_disk(values.get("disk"), values.pop(_DISK_OPTION, None))
    known = operation.request.model_fields
    return {name: values[name] for name in known if values.get(name) is not None}


def _by_option(operation: Operation) -> bool:
    """True if the disk has its place on the command line: `--disk` names it as well."""
    field = operation.request.model_fields.get("disk")
    return field is not None and marks(field).argument


def _parameters(operation: Operation) -> Iterator[inspect.Parameter]:
    for name, field in operation.request.model_fields.items():
        if FieldKind.from_field(field).secret:
            yield _parameter(_PASSWORD_FILE, PasswordFileOption, None)
            continue
        if any(isinstance(mark, Extra) and not is_offered(mark) for mark in field.metadata):
            continue
        kind = FieldKind.from_field(field)
        info = _info(name, field, kind)
        yield _parameter(name, Annotated[_annotation(kind), info], _default(field))
    if _by_option(operation):
        yield _parameter(_DISK_OPTION, DiskOption, None)
    if not operation.is_text and "format" not in operation.request.model_fields:
        yield _parameter("format_", FormatOption, Format.TABLE)
    if operation.progress:
        yield _parameter("quiet_", QuietOption, False)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:  # noqa: ANN401
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _info(name: str, field: FieldInfo, kind: FieldKind) -> Any:  # noqa: ANN401 - typer's own
    own = marks(field)
    metavar = own.metavar
    if metavar is None and kind.is_list and get_origin(kind.base) is Literal:
        metavar = f"[{'|'.join(get_args(kind.base))}]"
    common: dict[str, Any] = {"help": _plain(field.description or ""), "metavar": metavar}
    if kind.base in (int, float):
        common |= {"min": kind.limit("ge"), "max": kind.limit("le")}
    if own.argument:
        return typer.Argument(**common)
    flag = option(name)
    names = [f"{flag}/{own.off}" if own.off else flag]
    if own.short:
        names.append(own.short)
    return typer.Option(*names, envvar=own.variable, **common)


def _plain(text: str) -> str:
    """Escape brackets, which typer would take for a style and leave out."""
    return text.replace("[", r"\[")


def _default(field: FieldInfo) -> Any:  # noqa: ANN401 - of the field's type
    if field.is_required():
        return inspect.Parameter.empty
    default = field.get_default(call_default_factory=True)
    return None if default is PydanticUndefined else default


def _annotation(kind: FieldKind) -> Any:  # noqa: ANN401 - a type
    # typer takes no lists of choices; the request checks them.
    base = str if kind.is_list and get_origin(kind.base) is Literal else kind.base
    annotation = list[base] if kind.is_list else base  # type: ignore[valid-type]
    return Union[annotation, None] if kind.optional else annotation  # noqa: UP007 - made at run time


def marks(field: FieldInfo) -> Cli:
    """How the command line takes a field."""
    return next((mark for mark in field.metadata if isinstance(mark, Cli)), Cli())

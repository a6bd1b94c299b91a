"""The report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.fields import Run
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    Lines,
    OnThisComputer,
    Request,
    check_output,
    operation,
)
from hotset.core.rights import Needs, Right
from hotset.reports.archive import REPORT, Archive

if TYPE_CHECKING:
    from hotset.reports.model.document import RunDocument


class OfRun(Request):
    run: Run
    format: Annotated[
        Literal["html", "md", "json"],
        Field(description="An HTML page, Markdown, or all values as JSON."),
        Cli(short="-f"),
    ] = "html"
    output: Annotated[
        Path | None,
        Field(
            description="The file to write. Without it, the page goes to the archive and its path"
            " is printed; Markdown and JSON go to standard output."
        ),
        Cli(short="-o"),
        OnThisComputer,
    ] = None
    price: Annotated[
        fields.Expressions,
        Field(
            description="A price of the set-up, as in the experiment file's [prices] table:"
            " currency, server, origin, flash_per_gb, split_disk, memory_per_gb. Repeatable; kept"
            " with the run."
        ),
        Cli(metavar="KEY=VALUE"),
        Needs(Right.OPERATE),
    ] = []
    publish: Annotated[
        Path | None,
        Field(
            description="Publish the run as a reference, in a new folder inside this one: its"
            " values, its report in Markdown, the command and the machine."
        ),
        Cli(metavar="FOLDER"),
        OnThisComputer,
    ] = None


@operation("report run", Kind.QUERY, Right.READ, ("Export", "HotsetReport"))
def of_run(request: OfRun, context: Context) -> Lines:
    """Create the report of a run from its data."""
    from hotset.reports.render import html, markdown
    from hotset.reports.render import publish as publishing

    output, publish = request.output, request.publish
    check_output(output)
    if output is not None and publish is not None:
        raise RequestError("a published run has its own files: leave output out", field="publish")
    archive = Archive.default()
    document = archive.load(request.run)
    if request.price:
        with archive.hold(document.run):
            document = _add_price(archive.read(document.run), request.price)
            archive.save(document)
    if publish is not None:
        return Lines((str(publishing.write(document, publish)),))
    if request.format == "html":
        page = output or archive.path(document.run) / REPORT
        context.write(page, html.render(document))
        return Lines((str(page),) if output is None else ())
    markdown_or_json = markdown.render if request.format == "md" else _json
    text = markdown_or_json(document)
    if output is None:
        return Lines((text,))
    context.write(output, text)
    return Lines()


def _json(document: RunDocument) -> str:
    return document.model_dump_json(indent=1)


def _add_price(document: RunDocument, words: list[str]) -> RunDocument:
    """The document with these prices over those it has."""
    from hotset.reports.analysis import prices
    from hotset.reports.model.setup import Prices

    given = document.prices.model_dump() if document.prices else {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise RequestError(
                f"{word}: write it as key=value, for instance server=6000", field="price"
            )
        given[key.strip()] = value.strip()
    try:
        return prices.with_prices(document, Prices.model_validate(given))
    except ValidationError as error:
        faults = [
            f"{detail['loc'][0]} is missing"
            if detail["type"] == "missing"
            else f"{detail['loc'][0]} = {detail['input']!r}: {detail['msg']}"
            for detail in error.errors()
        ]
        raise RequestError("; ".join(faults), field="price") from None

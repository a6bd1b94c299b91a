"""Cmdlets of what there is beside operations: connections, jobs, reports as files and pages.

Here is how they are called; what they do is in the module's folder `Private`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from . import wording
from .cmdlets import CONNECTION, INTERVAL, Parameter, first_where
from .powershell import each, parameters, question, section

_OF_JOBS = replace(
    CONNECTION,
    help="The server that the jobs are on; objects of Get-HotsetJob know theirs. By default the"
    " server that you connected to last.",
)
_ID = Parameter("Id", "object[]", "", mandatory=True, position=0, filled=True, key=True)
_RUN = Parameter(
    "Run",
    "object[]",
    "A run's id, the beginning of one, or last; objects of Get-HotsetRun; or the objects of"
    " Get-HotsetHitRatio.",
    mandatory=True,
    position=0,
    filled=True,
    gathered=True,
)
_OF_RUN = replace(CONNECTION, help="The server that keeps the run, if the objects do not tell it.")


@dataclass(frozen=True, slots=True)
class Own:
    """A cmdlet.

    :ivar returns: the type of its objects; empty: nothing.
    :ivar does: the lines of its body by the block that they are in, written by hand; what was
        gathered is in ``$given``.
    :ivar asks: the place that is asked about each that is named, and the one that lists all; its
        body is made of them.
    :ivar changes: it takes -WhatIf and -Confirm.
    """

    name: str
    synopsis: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: str
    examples: tuple[str, ...]
    does: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asks: tuple[str, ...] = ()
    changes: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where the API has what it has beside its operations, under the name that its audit uses."""

    name: str
    cmdlet: str
    method: str
    path: str
    type: str = "Hotset.Job"
    items: str = ""


PLACES = (
    Place("jobs cancel", "Stop-HotsetJob", "Post", "/api/v1/jobs/{id}/cancel"),
    Place("jobs list", "Get-HotsetJob", "Get", "/api/v1/jobs", items="jobs"),
    Place("jobs rm", "Remove-HotsetJob", "Delete", "/api/v1/jobs/{id}", type=""),
    Place("jobs show", "Get-HotsetJob", "Get", "/api/v1/jobs/{id}"),
)


_FORGOTTEN = Parameter(
    "Connection",
    "object[]",
    "The servers to forget. All if left out.",
    position=0,
    filled=True,
    key=True,
    aliases=("Server",),
)

EVERY = (
    Own(
        "Get-HotsetConnection",
        "List the servers that the session is connected to, the one used without -Connection last.",
        "Nothing is asked of the servers.",
        (),
        "Hotset.Connection, with Server, Uri, Version, Right and Default",
        ("Get-HotsetTier -Connection (Get-HotsetConnection) | Where-Object State -ne active",),
        # A copy: Disconnect-Hotset behind it in a pipeline runs between two of them.
        {"end": ("$script:Sessions.ToArray()",)},
    ),
    Own(
        "Disconnect-Hotset",
        "Forget a server and its token. Jobs on the server go on.",
        'The token stays valid: "hotset console token revoke NAME" on the server takes it back.',
        (_FORGOTTEN,),
        "",
        ("Disconnect-Hotset db1", "Get-HotsetConnection | Disconnect-Hotset"),
        {
            "process": (
                "if (-not $Connection) {",
                "    $script:Sessions.Clear()",
                "    return",
                "}",
                "foreach ($session in @(Resolve-HotsetConnection $PSCmdlet $Connection)) {",
                "    $null = $script:Sessions.Remove($session)",
                "}",
                "if ($script:Sessions.Count) {"
                " $script:Sessions[$script:Sessions.Count - 1].Default = $true }",
            )
        },
    ),
    Own(
        "Get-HotsetJob",
        "List the jobs that the servers keep, or those of these ids.",
        "Long work is a job on the server: it goes on when PowerShell ends. Done, Total and Unit"
        " say how far a running job is, EtaS how many seconds it still takes; they are empty where"
        " the server cannot know.",
        (
            replace(
                _ID,
                mandatory=False,
                help="A job's id, the beginning of one with a star (2026*), or last, the newest."
                " All jobs if left out.",
            ),
            Parameter(
                "Limit", "Nullable[int]", "How many, the newest.", limits=("1", "500"), filled=True
            ),
            CONNECTION,
        ),
        "Hotset.Job",
        (
            "Get-HotsetJob | Where-Object State -eq running",
            "Get-HotsetJob last | Format-List *",
        ),
        asks=("jobs show", "jobs list"),
    ),
    Own(
        "Wait-HotsetJob",
        "Wait until jobs end, with a progress bar each, and return their results.",
        "A job that fails, is cancelled or is lost is an error that has the server's words; its"
        " TargetObject is the job. One job that fails ends the cmdlet, one among several does not."
        " Ctrl-C ends the waiting only: Stop-HotsetJob stops the job. A server that does not"
        " answer, because it is restarted, is asked again for -RetrySeconds.",
        (
            replace(_ID, help="The job's id, or jobs; several are waited for together."),
            Parameter(
                "TimeoutSeconds",
                "Nullable[int]",
                "An error when the jobs take longer; they go on. Default: for ever.",
                limits=("1", "2147483"),
                filled=True,
            ),
            replace(INTERVAL, help="Seconds between two looks."),
            Parameter(
                "RetrySeconds",
                "int",
                "How long a server that does not answer is asked again.",
                limits=("0", "86400"),
                default="60",
            ),
            _OF_JOBS,
        ),
        "Hotset.WarmupRun, Hotset.TpccRun and so on: what the job measured",
        (
            "Start-HotsetWarmup database:shop -Dsn sqlserver://db1/shop?trust=yes -Credential sa |"
            " Wait-HotsetJob",
            "Get-HotsetJob | Where-Object State -eq running | Wait-HotsetJob -TimeoutSeconds 3600",
        ),
        {
            "begin": ("$waiting = New-Object System.Collections.Generic.List[hashtable]",),
            "process": ("Add-HotsetWaiting $PSCmdlet $waiting $Connection $Id",),
            "end": (
                "Wait-HotsetStarted $PSCmdlet $waiting.ToArray() ($waiting.Count -gt 1)"
                " $TimeoutSeconds $IntervalSeconds $RetrySeconds",
            ),
        },
    ),
    Own(
        "Stop-HotsetJob",
        "Cancel a job: it takes down what it made and ends.",
        "A job that has ended stays as it is. Wait-HotsetJob waits for its end. The token needs the"
        " right 'operate'.",
        (replace(_ID, help="The job's id, or jobs."), _OF_JOBS),
        "Hotset.Job",
        (
            "Stop-HotsetJob 20261121-083000-tpcc-run",
            "Get-HotsetJob | Where-Object State -eq running | Stop-HotsetJob -Confirm",
        ),
        asks=("jobs cancel",),
        changes=True,
    ),
    Own(
        "Remove-HotsetJob",
        "Forget a job that has ended, with its result and its messages.",
        "What the job did stays. A running job is not forgotten: Stop-HotsetJob stops it. The token"
        " needs the right 'operate'.",
        (replace(_ID, help="The job's whole id, or jobs."), _OF_JOBS),
        "",
        ("Get-HotsetJob | Where-Object State -eq failed | Remove-HotsetJob",),
        asks=("jobs rm",),
        changes=True,
    ),
    Own(
        "Export-HotsetReport",
        "Write the report of a run, or of hit ratios, to a file.",
        "The server makes the report afresh. Hit ratios are made into a page here.",
        (
            _RUN,
            Parameter(
                "Path",
                "string",
                "The file to write. One that exists is overwritten with -Force only.",
                mandatory=True,
                position=1,
            ),
            Parameter(
                "Format",
                "string",
                "An HTML page, Markdown, or all values as JSON. By default told by the end of"
                " -Path.",
                allowed=("html", "md", "json"),
            ),
            Parameter("Force", "switch", "Overwrites the file."),
            Parameter("PassThru", "switch", "Returns the file."),
            _OF_RUN,
        ),
        "System.IO.FileInfo with -PassThru, otherwise nothing",
        (
            "Export-HotsetReport last -Path report.html -PassThru | Invoke-Item",
            "Get-HotsetHitRatio shop -By file | Export-HotsetReport -Path hits.html",
        ),
        {
            "end": (
                "$file = Get-HotsetReportFile $PSCmdlet $Path $Force.IsPresent",
                "$text = Get-HotsetReportText $PSCmdlet $Connection $given.ToArray() $file $Format",
                "if ($text -and $PSCmdlet.ShouldProcess($file, 'Write report')) {",
                "    Write-HotsetReport $PSCmdlet $file $text",
                "    if ($PassThru) { Get-Item -LiteralPath $file }",
                "}",
            ),
        },
        changes=True,
    ),
    Own(
        "Show-HotsetReport",
        "Open the report of a run, or of hit ratios, in the browser.",
        "The page is written to the folder for temporary files first.",
        (_RUN, _OF_RUN),
        "",
        ("Show-HotsetReport last",),
        {
            "end": (
                "$file = Join-Path ([System.IO.Path]::GetTempPath())"
                " \"hotset-$([guid]::NewGuid().ToString('N')).html\"",
                "$text = Get-HotsetReportText $PSCmdlet $Connection $given.ToArray() $file",
                "if (-not $text) { return }",
                "Write-HotsetReport $PSCmdlet $file $text",
                "Invoke-Item -LiteralPath $file",
            ),
        },
    ),
)


def functions() -> str:
    """The file of these cmdlets."""
    return "\n\n".join("\n".join(_function(cmdlet)) for cmdlet in EVERY) + "\n"


def table() -> Iterator[tuple[str, str]]:
    """Entries of the table of operations, by name."""
    for place in PLACES:
        entry = f"Cmdlet = '{place.cmdlet}'; Method = '{place.method}'; Path = '{place.path}'"
        entry += f"; Type = '{place.type}'" if place.type else ""
        yield place.name, entry + (f"; Items = '{place.items}'" if place.items else "")


def _function(cmdlet: Own) -> Iterator[str]:
    piped = (parameter for parameter in cmdlet.parameters if parameter.key or parameter.gathered)
    taken = next((parameter.name for parameter in piped), None)
    yield f"function {cmdlet.name} {{"
    yield "    <#"
    yield from section("SYNOPSIS", cmdlet.synopsis)
    yield from section("DESCRIPTION", cmdlet.description)
    for parameter in cmdlet.parameters:
        yield from section(f"PARAMETER {parameter.name}", parameter.help)
    yield from section("INPUTS", wording.inputs(taken) if taken else "None")
    yield from section("OUTPUTS", cmdlet.returns or "None")
    for example in cmdlet.examples:
        yield "    .EXAMPLE"
        yield f"    {example}"
    yield from section("LINK", "about_Hotset")
    yield "    #>"
    yield f"    [CmdletBinding({'SupportsShouldProcess' if cmdlet.changes else ''})]"
    if cmdlet.returns:
        yield f"    [OutputType('{cmdlet.returns.partition(' ')[0].rstrip(',')}')]"
    yield "    param("
    yield from parameters(cmdlet.parameters)
    yield "    )"
    for block, lines in _body(cmdlet).items():
        yield f"    {block} {{"
        yield from (f"        {line}" for line in lines)
        yield "    }"
    yield "}"


def _body(cmdlet: Own) -> Mapping[str, Iterable[str]]:
    if cmdlet.asks:
        return {"process": _asked(cmdlet)}
    gathered = first_where(cmdlet.parameters, gathered=True)
    if gathered is None:
        return cmdlet.does
    return {
        "begin": ("$given = New-Object System.Collections.Generic.List[psobject]",),
        "process": (f"foreach ($one in ${gathered.name}) {{ $given.Add($one) }}",),
        "end": ("if (-not $given.Count) { return }", *cmdlet.does["end"]),
    }


def _asked(cmdlet: Own) -> Iterator[str]:
    """The requests about each that was given, of :data:`PLACES`."""
    key, *others = cmdlet.parameters
    place, *listing = cmdlet.asks
    ask = "    Invoke-HotsetQuery $PSCmdlet $Connection"
    if listing:
        values = "; ".join(f"{other.name.lower()} = ${other.name}" for other in others[:-1])
        call = f"{ask} '{listing[0]}' -Like $like -Values @{{ {values} }}"
        return each(key, [call], place, lists=True)
    asking = question("$each", f"'{cmdlet.synopsis.rstrip('.')}'", "continue")
    call = f"{ask} '{place}' -Values @{{ {key.name.lower()} = $each }}"
    return each(key, [*(f"    {line}" for line in asking), call])

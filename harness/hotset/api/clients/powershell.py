"""The text of the cmdlets, and of the table by which the module finds an operation's place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from . import wording
from .cmdlets import AGAIN, NAMED, STARTS, Cmdlet, Parameter, first_where, pascal, schema
from .examples import examples

_HEAD = "# Generated from the table of operations: `make build` makes it again.\n"
_CREDENTIAL = (
    "[pscredential] [System.Management.Automation.Credential()] $Credential = [pscredential]::Empty"
)


def functions(every: Sequence[Cmdlet]) -> str:
    """The file of all generated cmdlets."""
    made = ["\n".join(_function(cmdlet)) for cmdlet in every if not cmdlet.by_hand]
    return "\n\n".join([_HEAD.rstrip("\n"), *made]) + "\n"


def table(every: Sequence[Cmdlet], beside: Iterable[tuple[str, str]]) -> str:
    """The file of what the module knows of each operation.

    :param beside: what it knows of other places of the API, by name.
    """
    lines = [
        _HEAD
        + "# Per operation: its cmdlet, its place in the API, the type of its objects, the list of",
        "# the result that holds them, and whether the answer is text.",
        "$script:Operations = @{",
    ]
    width = max(len(cmdlet.operation.name) for cmdlet in every) + 2
    for cmdlet in every:
        name = f"'{cmdlet.operation.name}'"
        entry = [
            f"Cmdlet = '{cmdlet.name}'",
            f"Method = '{cmdlet.method}'",
            f"Path = '{cmdlet.path}'",
        ]
        entry += [f"Type = '{cmdlet.type}'"] if cmdlet.type else []
        entry += [f"Items = '{cmdlet.items}'"] if cmdlet.items else []
        entry += ["Raw = $true"] if cmdlet.raw else []
        lines.append(f"    {name:<{width}} = @{{ {'; '.join(entry)} }}")
    for name, known in beside:
        quoted = f"'{name}'"
        lines.append(f"    {quoted:<{width}} = @{{ {known} }}")
    lines += ["}", "", "# Fields whose parameters have other names."]
    lines += ["$script:ParameterNames = @{"]
    # The API's own of jobs, and of runs as their operation calls them.
    renamed = _aliases(every) | {"job": "Id", "runs": "Run"}
    width = max(map(len, renamed))
    lines += [f"    {field:<{width}} = '{renamed[field]}'" for field in sorted(renamed)]
    lines += ["}", "", "# Which cmdlets have a parameter whose values the server can tell."]
    lines += ["$script:Completed = @{"]
    for name, cmdlets in _completions(every).items():
        lines += [
            f"    {name:<{max(map(len, COMPLETED))}} = @(",
            *(f"        '{cmdlet}'" for cmdlet in cmdlets),
            "    )",
        ]
    lines += ["}"]
    return "\n".join(lines) + "\n"


COMPLETED = ("Disk", "FlashName", "Run", "Target", "Pin", "Exclude", "Resume", "Name", "Model")


def _completions(every: Iterable[Cmdlet]) -> dict[str, list[str]]:
    cmdlets: dict[str, list[str]] = {name: [] for name in COMPLETED}
    for cmdlet in every:
        if cmdlet.by_hand:
            continue
        for parameter in cmdlet.parameters:
            if _is_completed(cmdlet, parameter):
                cmdlets[parameter.name].append(cmdlet.name)
    return cmdlets


def _is_completed(cmdlet: Cmdlet, parameter: Parameter) -> bool:
    if parameter.name == "Name":
        return cmdlet.operation.name == "warmup schedule remove"
    if parameter.name == "Resume":
        return cmdlet.operation.name == STARTS
    if parameter.name == "Target" and not cmdlet.operation.name.startswith("warmup "):
        return False
    return parameter.name in COMPLETED and cmdlet.operation.name != "tier create"


def _aliases(every: Iterable[Cmdlet]) -> dict[str, str]:
    return {
        parameter.field: parameter.name
        for cmdlet in every
        for parameter in cmdlet.parameters
        if parameter.field
        and parameter.name != pascal(parameter.field)
        and parameter.field not in ("yes", "seconds")
    }


def _function(cmdlet: Cmdlet) -> Iterator[str]:
    yield f"function {cmdlet.name} {{"
    yield from _help(cmdlet)
    yield f"    [CmdletBinding({_binding(cmdlet)})]"
    yield f"    [OutputType({', '.join(_outputs(cmdlet))})]"
    if cmdlet.alias:
        yield f"    [Alias('{cmdlet.alias}')]"
    yield "    param("
    yield from parameters(cmdlet.parameters)
    yield "    )"
    yield from _body(cmdlet)
    yield "}"


def _binding(cmdlet: Cmdlet) -> str:
    if not cmdlet.changes:
        return ""
    return (
        "SupportsShouldProcess, ConfirmImpact = 'High'" if cmdlet.asks else "SupportsShouldProcess"
    )


def _outputs(cmdlet: Cmdlet) -> list[str]:
    # Names only: PowerShell reads all as types where the first is one, and ours are none.
    kind = f"'{cmdlet.returned or 'System.String'}'"
    if cmdlet.operation.name == STARTS:
        return ["'Hotset.Job'"]
    if cmdlet.operation.name in NAMED:
        return [kind, "'Hotset.RunDocument'"]
    return [kind, "'Hotset.Job'"] if cmdlet.job else [kind]


def parameters(every: Sequence[Parameter]) -> Iterator[str]:
    """The lines of a cmdlet's parameters."""
    for number, parameter in enumerate(every, 1):
        yield from _parameter(parameter, every)
        if number < len(every):
            yield ""


def _parameter(parameter: Parameter, every: Sequence[Parameter]) -> Iterator[str]:
    attributes = ["Mandatory"] if parameter.mandatory else []
    attributes += [] if parameter.position is None else [f"Position = {parameter.position}"]
    if parameter.key or parameter.gathered:
        attributes += ["ValueFromPipeline"]
    elif parameter.mandatory or _is_of_object(parameter, every):
        attributes += ["ValueFromPipelineByPropertyName"]
    if attributes:
        yield f"        [Parameter({', '.join(attributes)})]"
    if parameter.aliases:
        yield f"        [Alias({', '.join(repr(name) for name in parameter.aliases)})]"
    # What is empty of a mandatory text PowerShell refuses by itself.
    refused = parameter.mandatory and not parameter.type.startswith("object")
    if parameter.filled and not refused and parameter.type != "switch":
        yield "        [ValidateNotNullOrEmpty()]"
    if parameter.allowed:
        yield f"        [ValidateSet({', '.join(repr(value) for value in parameter.allowed)})]"
    if parameter.limits:
        yield f"        [ValidateRange({', '.join(parameter.limits)})]"
    comma = "" if parameter is every[-1] else ","
    if parameter.name == "Credential":
        yield f"        {_CREDENTIAL}{comma}"
        return
    default = f" = {parameter.default}" if parameter.default else ""
    yield f"        [{parameter.type}] ${parameter.name}{default}{comma}"


def _is_of_object(parameter: Parameter, every: Sequence[Parameter]) -> bool:
    """It tells where an object is from: two machines may have a disk of the same name."""
    if parameter.name == "Machine":
        key = first_where(every, key=True)
        # The machine that a run knows is the one that it was measured on.
        of_run = any(other.name == "Run" for other in every)
        return key is not None and key.name in ("Disk", "FlashName") and not of_run
    return parameter.name == "Connection" and not first_where(every, gathered=True)


# What it does


def _body(cmdlet: Cmdlet) -> Iterator[str]:
    gathered, key = cmdlet.first_where(gathered=True), cmdlet.first_where(key=True)
    if gathered is None:
        yield "    process {"
        if key is None:
            yield from _call(cmdlet, "        ", None)
        elif cmdlet.operation.name == AGAIN:
            # Of one disk of a pipeline: the next begins where the first did.
            yield "        $begin = ConvertTo-HotsetTime $PSCmdlet Since $Since"
            yield "        do {"
            yield from (f"    {line}" for line in _each(cmdlet, key))
            yield "            $begin = 'last'"
            yield "            if ($Wait) { Start-Sleep -Milliseconds (1000 * $IntervalSeconds) }"
            yield "        } while ($Wait)"
        else:
            yield from _each(cmdlet, key)
        yield "    }"
        return
    yield from _gathering(cmdlet, gathered)


def _each(cmdlet: Cmdlet, key: Parameter) -> Iterator[str]:
    named = NAMED.get(cmdlet.operation.name)
    lines = each(key, _call(cmdlet, "    ", key), named, _lists(cmdlet, key))
    yield from (f"        {line}" for line in lines)


def each(
    key: Parameter, call: Iterable[str], named: str | None = None, lists: bool = False
) -> Iterator[str]:
    """One request for each that was given.

    :param named: what is asked about one that is named, if not the same as about all.
    :param lists: it lists all where none is named, so that a pattern can choose among them.
    """
    yield f"foreach ($each in @(Select-HotsetItem $PSCmdlet {key.name} ${key.name})) {{"
    if lists:
        yield "    $like = ''"
        of_all = f'{{ $like, $each = "{key.name}=$each", $null }}'
        yield rf"    if ($each -match '[*?]|\[.+\]') {of_all}"
    if named is not None:
        yield "    if ($each) {"
        ask = f"Invoke-HotsetQuery $PSCmdlet $Connection '{named}'"
        yield f"        {ask} -Values @{{ {key.name.lower()} = $each }}"
        yield "        continue"
        yield "    }"
    yield from call
    yield "}"


def _gathering(cmdlet: Cmdlet, gathered: Parameter) -> Iterator[str]:
    """The body of a cmdlet that puts all of a pipeline into one request."""
    name = gathered.sent.partition(".")[0]
    yield "    begin {"
    yield f"        {name} = New-Object System.Collections.Generic.List[string]"
    yield "        $from = New-Object System.Collections.Generic.List[psobject]"
    yield "    }"
    yield "    process {"
    yield f"        foreach ($one in ${gathered.name}) {{"
    yield f"            $named = ConvertTo-HotsetTarget $PSCmdlet {gathered.name} $one"
    yield "            if (-not $named) { continue }"
    yield f"            {name}.Add($named)"
    yield "            $from.Add($one)"
    yield "        }"
    yield "    }"
    yield "    end {"
    yield "        if (-not $from.Count -and $PSCmdlet.MyInvocation.ExpectingInput) { return }"
    yield "        $origin = Get-HotsetOrigin $PSCmdlet $Connection $from.ToArray()"
    yield "        if ($origin) { $Connection = $origin }"
    if any(parameter.name == "Disk" for parameter in cmdlet.parameters):
        yield "        $held = Get-HotsetOrigin $PSCmdlet $Disk $from.ToArray() Disk"
        yield "        if ($held) { $Disk = $held }"
    if any(parameter.name == "Machine" for parameter in cmdlet.parameters):
        yield "        $place = Get-HotsetOrigin $PSCmdlet $Machine $from.ToArray() Machine"
        yield "        if ($place) { $Machine = $place }"
    if cmdlet.has_login:
        # Not into $Dsn: whatever is put there is validated as what was given.
        yield "        $database = Get-HotsetInstance $PSCmdlet $Dsn $from.ToArray()"
    yield from _call(cmdlet, "        ", gathered)
    yield "    }"


def _lists(cmdlet: Cmdlet, key: Parameter) -> bool:
    """It lists all where none is named, so that a pattern can choose among them."""
    return (
        key.key
        and not key.mandatory
        and bool(cmdlet.items)
        and cmdlet.operation.name != AGAIN
        and (key.field or key.name.lower()) in schema(cmdlet)["properties"]
    )


def _login(cmdlet: Cmdlet, indent: str) -> Iterator[str]:
    key = cmdlet.first_where(key=True)
    if cmdlet.has_login:
        dsn = "$each" if key is not None and key.name == "Dsn" else "$Dsn"
        dsn = "$database" if cmdlet.first_where(gathered=True) is not None else dsn
        leave = "return" if key is None else "continue"
        yield f"{indent}$login = Resolve-HotsetLogin $PSCmdlet {dsn} $Credential $Engine"
        yield f"{indent}if ($null -eq $login) {{ {leave} }}"


def _call(cmdlet: Cmdlet, indent: str, key: Parameter | None) -> Iterator[str]:
    yield from _login(cmdlet, indent)
    yield from _asking(cmdlet, indent, key)
    helper = "Invoke-HotsetJob" if cmdlet.job else "Invoke-HotsetQuery"
    call = f"{indent}{helper} $PSCmdlet $Connection '{cmdlet.operation.name}'"
    if key is not None and _lists(cmdlet, key):
        call += " -Like $like"
    if cmdlet.job:
        call += " -AsJob $true" if cmdlet.operation.name == STARTS else " -AsJob $AsJob.IsPresent"
    call += f" -Shows {cmdlet.shows}" if cmdlet.shows else ""
    if not cmdlet.values:
        yield call
        return
    yield f"{call} -Values @{{"
    width = max(map(len, cmdlet.values))
    for name, sent in cmdlet.values.items():
        yield f"{indent}    {name:<{width}} = {sent}"
    yield f"{indent}}}"


def _asking(cmdlet: Cmdlet, indent: str, key: Parameter | None) -> Iterator[str]:
    if not cmdlet.changes:
        return
    subject = _subject(cmdlet, key)
    leave = "continue" if key is not None and key.key else "return"
    if any(parameter.name == "Machine" for parameter in cmdlet.parameters):
        subject += " $Machine"
    losses = wording.losses(cmdlet.operation)
    always = f"; {losses.pop('')}" if "" in losses else ""
    action = f"'{wording.action(cmdlet.operation)}{always}'"
    for name, lost in losses.items():
        action += f" + $(if ({name}) {{ '; {lost}' }})"
    yield from (f"{indent}{line}" for line in question(subject, action, leave, cmdlet.dry_run))


def question(subject: str, action: str, leave: str, dry_run: bool = False) -> Iterator[str]:
    """Ask before something is changed.

    :param subject: the expression for what is changed.
    :param action: the expression for what is done to it.
    :param leave: what is done where the answer is no.
    :param dry_run: with -WhatIf the server tells what it would do.
    """
    yield f"$what = Get-HotsetSubject $Connection {subject}"
    yield f"$go = $PSCmdlet.ShouldProcess($what, {action})"
    yield f"if (-not $go{' -and -not $WhatIfPreference' if dry_run else ''}) {{ {leave} }}"


def _subject(cmdlet: Cmdlet, key: Parameter | None) -> str:
    """Return the PowerShell expression for the subject of the question."""
    if key is not None:
        return "$each" if key.key else f"(${key.sent[1:].partition('.')[0]} -join ', ')"
    names = [parameter.name for parameter in cmdlet.parameters]
    return next(
        (
            f"${name}"
            for name in ("Disk", "Dsn", "Target", "File", "Folder", "Name")
            if name in names
        ),
        "''",
    )


# Its help


def _help(cmdlet: Cmdlet) -> Iterator[str]:
    indent = "    "
    operation = cmdlet.operation
    yield f"{indent}<#"
    yield from section("SYNOPSIS", wording.summary(operation))
    yield from section("DESCRIPTION", wording.description(operation))
    for parameter in cmdlet.parameters:
        yield from section(f"PARAMETER {parameter.name}", parameter.help)
    yield from section("INPUTS", _inputs(cmdlet))
    yield from section("OUTPUTS", _help_text(cmdlet))
    for example, explanation in examples(cmdlet):
        yield f"{indent}.EXAMPLE"
        yield f"{indent}{example}"
        if explanation:
            yield ""
            yield from wording.wrap(explanation, indent)
    yield from section("LINK", "about_Hotset")
    yield f"{indent}#>"


def section(name: str, text: str) -> Iterator[str]:
    """The lines of a section of the help."""
    yield f"    .{name}"
    yield from wording.wrap(text, "    ")


def _inputs(cmdlet: Cmdlet) -> str:
    gathered, key = cmdlet.first_where(gathered=True), cmdlet.first_where(key=True)
    if gathered is not None:
        return f"System.String or objects: -{gathered.name}"
    return wording.inputs(key.name) if key is not None else "None"


def _help_text(cmdlet: Cmdlet) -> str:
    if cmdlet.operation.name == STARTS:
        return "Hotset.Job"
    if cmdlet.operation.name in NAMED:
        return f"{cmdlet.type}; of one that is named Hotset.RunDocument, with everything."
    kind = cmdlet.returned or "System.String: what the server would run, or nothing"
    if not cmdlet.type and not cmdlet.job:
        kind = "System.String"
    return f"{kind}. With -AsJob Hotset.Job." if cmdlet.job else kind


__all__ = ["each", "functions", "parameters", "question", "section", "table"]

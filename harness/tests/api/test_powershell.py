"""scripts/Hotset and its twin in bash, held against their grammars and the API's own description.

Where there is a PowerShell the module runs for real as well (test_powershell_live).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from tree_sitter import Node

from hotset.api import app, clients
from hotset.api.clients import cmdlets
from hotset.api.clients import own as own_cmdlets
from hotset.api.clients.cmdlets import Cmdlet
from hotset.core.record import columns_of
from hotset.core.rights import Right
from hotset.hitratio import report as hits
from hotset.monitoring import tier_status
from hotset.operations import table
from hotset.reports.analysis.comparison.compare import Line
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import Repeat
from hotset.reports.render.tables import ListingRow
from hotset.warmup import text as warmup_text
from tests import powershell, sqlserver_examples
from tests.powershell import MODULE, Field, Request, inside, text

SCRIPTS = [
    *sorted(path for path in MODULE.rglob("*") if re.fullmatch(r"\.ps[dm]?1", path.suffix)),
    *sorted((MODULE.parent / "tests").glob("*.ps*1")),
    Path(__file__).parents[1].joinpath("powershell_live.ps1"),
]
# What both editions have, besides the module's own functions.
CMDLETS = {
    "Add-Member",
    "ConvertFrom-Json",
    "ConvertTo-Html",
    "ConvertTo-Json",
    "ForEach-Object",
    "Get-ChildItem",
    "Get-Content",
    "Get-Item",
    "Get-Random",
    "Import-Clixml",
    "Invoke-Item",
    "Join-Path",
    "Measure-Object",
    "New-Object",
    "Register-ArgumentCompleter",
    "Select-Object",
    "Set-Alias",
    "Set-StrictMode",
    "Sort-Object",
    "Start-Sleep",
    "Test-Path",
    "Where-Object",
    "Write-Progress",
    "Write-Verbose",
    "Write-Warning",
    ".",
}
AUTOMATIC = {
    "_",
    "null",
    "true",
    "false",
    "pscmdlet",
    "psscriptroot",
    "psversiontable",
    "matches",
    "myinvocation",
    "whatifpreference",
    "erroractionpreference",
    "global:error",
    "progresspreference",
    "args",
}
# Operators of PowerShell 7 that 5.1 cannot read.
NEWER = {"??", "??=", "?.", "?[", "&&", "||"}
# Parameters, values and variables that 5.1 lacks, by the reference of both editions.
NEWER_PARAMETERS = {
    "add-content": {"asbytestream"},
    "convertfrom-json": {"ashashtable", "depth", "noenumerate", "datekind"},
    "convertfrom-securestring": {"asplaintext"},
    "convertto-csv": {"quotefields", "usequotes", "includetypeinformation"},
    "convertto-html": {"charset", "meta", "transitional"},
    "convertto-json": {"asarray", "enumsasstrings", "escapehandling"},
    "export-csv": {"quotefields", "usequotes", "includetypeinformation"},
    "foreach-object": {"parallel", "throttlelimit", "timeoutseconds", "asjob"},
    "get-childitem": {"followsymlink"},
    "get-content": {"asbytestream"},
    "get-date": {"asutc", "unixtimeseconds"},
    "import-csv": {"asarray"},
    "invoke-restmethod": {
        *(
            "skipcertificatecheck",
            "skiphttperrorcheck",
            "authentication",
            "token",
            "form",
            "noproxy",
        ),
        *("followrellink", "sslprotocol", "statuscodevariable", "responseheadersvariable"),
        *("maximumretrycount", "retryintervalsec", "custommethod", "resume", "httpversion"),
    },
    "join-path": {"additionalchildpath"},
    "measure-object": {"allstats", "standarddeviation"},
    "new-guid": {"empty", "inputobject"},
    "select-object": {"skipindex", "caseinsensitive"},
    "select-string": {"raw", "noemphasis", "culture"},
    "set-content": {"asbytestream"},
    "sort-object": {"stable", "top", "bottom"},
    "split-path": {"leafbase", "extension"},
    "start-job": {"workingdirectory"},
    "start-process": {"environment"},
    "start-sleep": {"duration"},
    "test-connection": {"targetname", "tcpport", "ping"},
    "unblock-file": {"force"},
}
NEWER_PARAMETERS["invoke-webrequest"] = NEWER_PARAMETERS["invoke-restmethod"]
NEWER_VALUES = {"utf8nobom", "utf8bom", "ansi"}
NEWER_COMMANDS = {
    *("get-error", "test-json", "join-string", "get-uptime", "remove-alias", "get-securerandom"),
    *("convertfrom-markdown", "show-markdown", "remove-service", "start-threadjob"),
    *("convertto-clixml", "convertfrom-clixml"),
}
NEWER_VARIABLES = {"iswindows", "islinux", "ismacos", "iscoreclr", "psstyle"}


def of_each(items: Callable[[], Iterable[Any]]) -> Callable[[Callable[[Any], None]], Any]:
    """One test of all of them, which are made when it runs; it names those that fail."""

    def as_test(check: Callable[[Any], None]) -> Callable[[], None]:
        def test() -> None:
            tried, failed = 0, []
            for one in items():
                tried += 1
                try:
                    check(one)
                except AssertionError as error:
                    failed.append(f"{_name_of(one)}: {error}")
            assert tried > 0
            assert not failed, "\n".join(failed)

        test.__doc__ = check.__doc__
        return test

    return as_test


def _name_of(one: Any) -> str:  # noqa: ANN401 - a cmdlet, a file, a view or a request
    if isinstance(one, ElementTree.Element):
        return str(one.findtext("Name"))
    return f"{one.sender} {one.path}" if isinstance(one, Request) else str(one.name)


@cache
def public() -> dict[str, powershell.Function]:
    return powershell.functions("Public")


@cache
def own() -> dict[str, powershell.Function]:
    return {**powershell.functions("Private"), **public()}


@cache
def of_operations() -> dict[str, Cmdlet]:
    return {one.operation.name: one for one in cmdlets.every()}


@cache
def description() -> dict[str, Any]:
    return app.create().openapi()


@cache
def operations_served() -> dict[tuple[str, str], Any]:
    return {
        (method, path): operation
        for path, methods in description()["paths"].items()
        for method, operation in methods.items()
    }


# The module's text


@of_each(lambda: SCRIPTS)
def test_every_script_is_powershell_that_both_editions_read(path: Path) -> None:
    root = powershell.parse(path)
    assert powershell.faults(root) == []
    path.read_bytes().decode("ascii")  # 5.1 takes a file without a mark for the local code page
    leaves = [text(one) for one in inside(root) if not one.children]
    assert NEWER.isdisjoint(leaves)
    assert not list(inside(root, "ternary_expression"))


def newer_than_5_1(root: Node) -> list[str]:
    """What Windows PowerShell 5.1 reads, but does not have."""
    found = []
    for command in inside(root, "command"):
        name = text(next(inside(command, "command_name"), None)).lower()
        elements = next(inside(command, "command_elements"), command).children
        flags = [
            text(one).strip("-:").lower() for one in elements if one.type == "command_parameter"
        ]
        plain = [
            one for one in elements if one.type not in ("command_parameter", "command_argument_sep")
        ]
        given = NEWER_PARAMETERS.get(name, set())
        # A name may be cut short, as far as it is told from others.
        cut = [
            flag for flag in flags if any(one.startswith(flag) and len(flag) > 2 for one in given)
        ]
        found += [f"{name} -{flag}" for flag in cut]
        found += [name] if name in NEWER_COMMANDS else []
        found += [text(one) for one in plain if text(one).lower().strip("'\"") in NEWER_VALUES]
        if name == "join-path" and not flags and len(plain) > 2:
            found.append(f"{name} with {len(plain)} parts")
    found += [
        text(one)
        for one in inside(root, "variable")
        if text(one).strip("${}").lower() in NEWER_VARIABLES
    ]
    return found


# The tests' own scripts run in PowerShell 7.
SHIPPED = [path for path in SCRIPTS if MODULE in path.parents]


@of_each(lambda: SHIPPED)
def test_no_command_has_a_parameter_that_5_1_lacks(path: Path) -> None:
    assert newer_than_5_1(powershell.parse(path)) == []


@of_each(lambda: public().values())
def test_no_example_has_a_parameter_that_5_1_lacks(cmdlet: powershell.Function) -> None:
    for example in cmdlet.section("EXAMPLE"):
        assert newer_than_5_1(powershell.parse_text(example.partition("\n\n")[0])) == [], example


@pytest.mark.parametrize(
    "script",
    [
        "1..3 | ForEach-Object -Parallel { $_ }",
        "ConvertFrom-Json $text -AsHashtable",
        "Invoke-RestMethod $uri -SkipCertificateCheck",
        "Invoke-WebRequest $uri -SkipHttp",
        "Join-Path $a $b $c",
        "Get-Content $file -AsByteStream",
        "Set-Content $file $text -Encoding utf8NoBOM",
        "Get-Error",
        "if ($IsWindows) { 1 }",
        "Sort-Object Name -Top 3",
        "Start-Sleep -Duration (New-TimeSpan -Seconds 1)",
    ],
)
def test_what_5_1_lacks_is_told(script: str) -> None:
    assert newer_than_5_1(powershell.parse_text(script))


def test_little_of_the_module_is_written_by_hand() -> None:
    """What the operations tell is generated: parameters, help, views. Bodies that stand as texts
    beside what is generated count as well: moved there, lines would only be out of sight."""
    by_hand = [path for path in SHIPPED if path not in clients.make()]
    assert len(by_hand) > 8
    bodies = [lines for cmdlet in own_cmdlets.EVERY for lines in cmdlet.does.values()]
    assert len(bodies) > 5
    lines = sum(len(path.read_text().splitlines()) for path in by_hand)
    assert lines + sum(map(len, bodies)) <= 1500


def test_what_5_1_has_is_not_told() -> None:
    script = "Join-Path (Join-Path $a $b) $c; Get-Content $file -Encoding UTF8; Sort-Object Name"
    assert newer_than_5_1(powershell.parse_text(script)) == []


def test_a_text_that_is_no_powershell_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ps1"
    broken.write_text("function Get-It {\n    param([string $Name)\n    if ($Name) { 'a'\n}\n")
    assert powershell.faults(powershell.parse(broken))


def test_the_manifest_exports_every_public_function_and_the_old_names() -> None:
    assert powershell.exported() == sorted(public())
    manifest = (MODULE / "Hotset.psd1").read_text()
    aliases = [
        (alias, name)
        for name, cmdlet in public().items()
        for alias in re.findall(r"^    \[Alias\('(\S+)'\)\]$", text(cmdlet.node), re.MULTILINE)
    ]
    assert dict(aliases) == {one.alias: one.name for one in of_operations().values() if one.alias}
    for alias, name in aliases:
        assert f"'{alias}'" in manifest
        assert name in public()
    # All that the module of fourteen cmdlets had.
    before = {
        "Compare-HotsetRun", "Connect-Hotset", "Get-HotsetDisk", "Get-HotsetHitRatio",
        "Get-HotsetJob", "Get-HotsetRun", "Get-HotsetWarmupPlan", "Invoke-HotsetTpcc",
        "Invoke-HotsetTpch", "Move-HotsetTempdb", "Set-HotsetSqlMemory", "Start-HotsetWarmup",
        "Stop-HotsetJob", "Wait-HotsetJob",
    }  # fmt: skip
    assert before <= set(public()) | {alias for alias, _ in aliases}


@of_each(lambda: of_operations().values())
def test_every_operation_has_a_cmdlet_that_takes_all_its_fields(cmdlet: Cmdlet) -> None:
    """Held against the operation itself, not against what the cmdlets are generated of."""
    found = public()[cmdlet.name]
    if cmdlet.operation.name == "report run":
        asking = text(own()["Get-HotsetReportText"].node).partition("'report run' -Values @{")[2]
        sent_names = re.findall(r"^ +(\w+) +=", asking.partition("}")[0], re.MULTILINE)
        assert set(sent_names) == set(
            _accepted(operations_served()["get", "/runs/{run}/report"])[0]
        )
        return
    sent = next(one for one in found.requests if one.operation == cmdlet.operation.name)
    served = operations_served().get((sent.method, sent.path))
    if sent.path == "/metrics":
        assert set(sent.fields) == set(cmdlet.operation.fields)
        return
    assert served is not None
    assert set(sent.fields) == set(_accepted(served)[0])
    for name, schema in _accepted(served)[0].items():
        _assert_limits(cmdlet, name, _without_null(schema))


def _assert_limits(cmdlet: Cmdlet, name: str, schema: dict[str, Any]) -> None:
    """A range of the API is one of the parameter, unless it is none of a plain number."""
    if schema.get("type") in ("integer", "number") and "maximum" in schema and "minimum" in schema:
        (shown,) = (one.name for one in cmdlet.parameters if one.field == name)
        limits = public()[cmdlet.name].parameters[shown].limits
        assert limits == (schema["minimum"], schema["maximum"]), name


@of_each(lambda: public().values())
def test_every_cmdlet_has_whole_help(cmdlet: powershell.Function) -> None:
    for section in ("SYNOPSIS", "DESCRIPTION", "INPUTS", "OUTPUTS", "EXAMPLE", "LINK"):
        assert cmdlet.section(section), section
        assert all(cmdlet.section(section)), section
    assert "`" not in cmdlet.help
    assert re.findall(r"^ *\.PARAMETER (\w+)$", cmdlet.help, re.MULTILINE) == list(
        cmdlet.parameters
    )
    # No option of the command line: a cmdlet's are -Like -This.
    assert not re.search(r"(?<!\S)--[a-z]|HOTSET_PASSWORD|xit code", cmdlet.help)
    # An example's parameters are the cmdlet's own; what stands in brackets is another command.
    for example in re.findall(r"^ *\.EXAMPLE\n +(.+)$", cmdlet.help, re.MULTILINE):
        plain = re.sub(r"'[^']*'", "''", re.sub(r" \([^)]*\)", "", example))
        for call in re.findall(rf"{cmdlet.name}\b([^|]*)", plain):
            given = re.findall(r" -([A-Z]\w+)", call.partition(")")[0])
            assert set(given) <= {*cmdlet.parameters, "WhatIf", "Confirm"}, example
    assert any(cmdlet.name in example for example in cmdlet.section("EXAMPLE"))


@of_each(lambda: public().values())
def test_every_example_works_on_sql_server_or_names_postgresql(cmdlet: powershell.Function) -> None:
    for example in cmdlet.section("EXAMPLE"):
        assert list(sqlserver_examples.faults(example)) == []
        named = re.search(r"\b(?:table|index|database):|-By (?:table|database)\b", example)
        # A pin goes by its name.
        if named and "Dsn" in cmdlet.parameters and cmdlet.name != "Remove-HotsetPin":
            assert " -Dsn " in example, example


@of_each(lambda: public().values())
def test_every_cmdlet_asks_the_servers_that_are_named(cmdlet: powershell.Function) -> None:
    if cmdlet.name in ("Connect-Hotset", "Get-HotsetConnection"):
        return
    connection = cmdlet.parameters["Connection"]
    assert connection.type == "object[]"
    assert "[Alias('Server')]" in connection.attributes


@of_each(lambda: public().values())
def test_names_of_parameters_and_types_are_free(cmdlet: powershell.Function) -> None:
    """No parameter hides a variable of PowerShell's own or one that every cmdlet has."""
    names = [name.lower() for name in cmdlet.parameters]
    aliases = [
        one.lower()
        for parameter in cmdlet.parameters.values()
        for said in parameter.attributes
        if said.startswith("[Alias(")
        for one in re.findall(r"'(\w+)'", said)
    ]
    assert len({*names, *aliases}) == len(names) + len(aliases)
    assert {*names, *aliases}.isdisjoint(TAKEN)
    types = text(_output_type(cmdlet.node))
    # A type among names of ours would have PowerShell read all as types.
    assert types.count("[") == 1 or "'" not in types


TAKEN = {
    "args",
    "error",
    "event",
    "eventargs",
    "eventsubscriber",
    "executioncontext",
    "false",
    "foreach",
    "home",
    "host",
    "input",
    "lastexitcode",
    "matches",
    "myinvocation",
    "nestedpromptlevel",
    "null",
    "pid",
    "profile",
    "psboundparameters",
    "pscmdlet",
    "pscommandpath",
    "psculture",
    "psitem",
    "psscriptroot",
    "pwd",
    "sender",
    "shellid",
    "stacktrace",
    "switch",
    "this",
    "true",
    "verbose",
    "vb",
    "debug",
    "db",
    "erroraction",
    "ea",
    "warningaction",
    "wa",
    "informationaction",
    "infa",
    "errorvariable",
    "ev",
    "warningvariable",
    "wv",
    "informationvariable",
    "iv",
    "outvariable",
    "ov",
    "outbuffer",
    "ob",
    "pipelinevariable",
    "pv",
    "progressaction",
    "proga",
    "whatif",
    "wi",
    "confirm",
    "cf",
}


@of_each(lambda: public().values())
def test_strings_and_objects_come_by_the_pipeline(cmdlet: powershell.Function) -> None:
    taken = [
        one
        for one in cmdlet.parameters.values()
        if any(re.search(r"ValueFromPipeline\b", said) for said in one.attributes)
    ]
    assert len(taken) <= 1
    assert bool(taken) == (cmdlet.section("INPUTS") != ["None"])
    if taken:
        # All of a pipeline is seen, and not its last item only.
        assert "process {" in text(cmdlet.node)
        assert f"-{taken[0].name}" in cmdlet.section("INPUTS")[0]


@of_each(lambda: public().values())
def test_no_variable_of_its_own_is_a_parameter(cmdlet: powershell.Function) -> None:
    """Names have no case: $origin would be what -Origin was given."""
    own = {"each", "from", "go", "login", "one", "origin", "place", "runs", "targets", "what"}
    body = text(cmdlet.node).partition("\n    )\n")[2].lower()
    set_here = {one for one in own if re.search(rf"\${one} (=|in) ", body)}
    assert set_here & {one.lower() for one in cmdlet.parameters} == set()


def test_all_are_asked_for_where_no_item_is_named() -> None:
    """``foreach ($each in $null)`` runs no time, and an array of one null runs once: whatever an
    edition makes of a function that returns null, the array is there."""
    calls = [
        line
        for one in public().values()
        for line in text(one.node).splitlines()
        if "Select-HotsetItem" in line
    ]
    assert len(calls) > 20
    assert {one for one in calls if "in @(Select-HotsetItem $" not in one} == set()


@of_each(lambda: public().values())
def test_objects_go_back_to_where_they_are_from(cmdlet: powershell.Function) -> None:
    """By their properties Server and Machine; what gathers a pipeline looks at its objects."""
    body = text(cmdlet.node)
    if "= New-Object System.Collections.Generic.List[psobject]" in body:
        asked = ("Get-HotsetOrigin $PSCmdlet $Connection $", "Get-HotsetReportText $PSCmdlet")
        assert any(one in body for one in asked)
        gathers_there = "$PSCmdlet $Machine $from.ToArray() Machine" in body
        assert gathers_there == ("Machine" in cmdlet.parameters)
        assert ("$login" in body) == ("Get-HotsetInstance $PSCmdlet $Dsn $" in body)
    elif "Disk" in cmdlet.parameters and "Select-HotsetItem $PSCmdlet Disk $Disk" in body:
        machine = cmdlet.parameters.get("Machine")
        of_another = "Run" in cmdlet.parameters  # a run's machine is the one it was measured on
        by_name = machine is not None and any(
            "ValueFromPipelineByPropertyName" in one for one in machine.attributes
        )
        assert by_name == (machine is not None and not of_another)


def test_a_list_that_a_pipeline_may_change_is_copied_before_it_is_shown() -> None:
    """Get-HotsetConnection | Disconnect-Hotset: the second runs between two of the first."""
    shown = text(own()["Get-HotsetConnection"].node)
    assert re.findall(r"\$script:Sessions\S*", shown) == ["$script:Sessions.ToArray()"]


def test_nobody_sets_an_error_preference_that_errors_of_one_item_would_end_a_pipeline_by() -> None:
    """A module's or a caller's 'Stop' makes WriteError end the pipeline."""
    for name, function in own().items():
        body = text(function.node)
        if "Write-HotsetFailure $" in body and name != "Write-HotsetFailure":
            assert "$ErrorActionPreference = 'Stop'" not in body or name in STOPS_LAST, name
    assert not re.search(r"^\$ErrorActionPreference", (MODULE / "Hotset.psm1").read_text(), re.M)


# Where it is set right before the error that ends the call.
STOPS_LAST = {"Resolve-HotsetConnection"}


@of_each(lambda: own().values())
def test_every_variable_is_set_and_every_command_known(function: powershell.Function) -> None:
    parameters = {name.lower() for name in function.parameters}
    assigned = set(_assigned(function.node))
    for variable in inside(function.node, "variable"):
        name = text(variable).strip("${}@").lower()
        if not name.startswith(("script:", "env:")):
            assert name in parameters | assigned | AUTOMATIC, f"${name} is never set"
    for command in inside(function.node, "command"):
        name = text(next(inside(command, "command_name")))
        assert name in own() or name in CMDLETS, name
        if name in own():
            elements = next(inside(command, "command_elements"), command).children
            flags = [text(one) for one in elements if one.type == "command_parameter"]
            assert {flag.strip("-:") for flag in flags} <= set(own()[name].parameters), name


def _assigned(node: Node) -> Iterator[str]:
    for one in inside(node, "script_parameter"):
        yield text(next(inside(one, "variable"), None)).strip("${}").lower()
    # $first, $second = ...
    for one in inside(node, "left_assignment_expression"):
        yield from (text(variable).strip("${}").lower() for variable in inside(one, "variable"))
    for one in inside(node, "foreach_statement"):
        yield text(next(inside(one, "variable"))).strip("${}").lower()


@of_each(lambda: public().values())
def test_what_changes_something_takes_whatif(cmdlet: powershell.Function) -> None:
    body = text(cmdlet.node)
    # A POST that answers 200 only reads.
    changes = any(
        request.method != "get" and "200" not in operations_served()[_key(request)]["responses"]
        for request in cmdlet.requests
        if not request.operation or table.find(request.operation).right is not Right.READ
    )
    changes &= not cmdlet.name.startswith(("Find-", "Get-", "Test-"))
    changes |= cmdlet.name == "Export-HotsetReport"  # it writes a file here
    assert changes == ("[CmdletBinding(SupportsShouldProcess" in body)
    assert changes == ("$PSCmdlet.ShouldProcess(" in body)
    operations = [table.find(one.operation) for one in cmdlet.requests if one.operation]
    is_high = any(one.destroys or one.stops for one in operations)
    assert is_high == ("ConfirmImpact = 'High'" in body)


@of_each(lambda: public().values())
def test_a_question_names_the_machine(cmdlet: powershell.Function) -> None:
    """Two machines of one server may have a disk of the same name."""
    asking = re.findall(r"Get-HotsetSubject .*", text(cmdlet.node))
    assert all(one.endswith(" $Machine") == ("Machine" in cmdlet.parameters) for one in asking)


def test_a_page_that_is_made_here_says_its_letters() -> None:
    """It is written as UTF-8, and a file has no header that says so."""
    assert '<meta charset="utf-8">' in text(own()["ConvertTo-HotsetHitPage"].node)


def test_secrets_are_not_written() -> None:
    """A password goes into a body, and no message is made of one."""
    secret = re.compile(r"(?i)\$(login|token|credential|given|values|request\b(?!\.Uri))")
    for request in powershell.requests():
        assert "password" not in request.fields or request.method == "post"
    for function in own().values():
        for command in inside(function.node, "command"):
            assert not (text(command).startswith("Write-") and secret.search(text(command)))


TEXTS = [
    MODULE / "en-US/about_Hotset.help.txt",
    MODULE.parents[1] / "docs/powershell.md",
    MODULE.parents[1] / "docs/console-and-api.md",
    MODULE.parents[1] / "docs/sql-server.md",
]


@of_each(lambda: TEXTS)
def test_texts_name_cmdlets_and_parameters_that_there_are(path: Path) -> None:
    found = path.read_text(encoding="utf-8")
    aliases = {one.alias: one.name for one in of_operations().values() if one.alias}
    # In running text any parameter may follow; in code only the cmdlet's own.
    named = re.findall(r"\b([A-Z][a-z]+-Hotset[A-Za-z]*)((?: [^|()\n]*)?)", found)
    assert named or path.name == "sql-server.md"
    for name, arguments in named:
        cmdlet = public().get(aliases.get(name, name))
        assert cmdlet is not None, name
        # A sentence may go on about other cmdlets.
        code = re.split(r"[`#;]|\\. ", re.sub(r"'[^']*'", "''", arguments))[0]
        for given in re.findall(r"(?<= )-([A-Z]\w+)", code):
            assert given in {*cmdlet.parameters, "WhatIf", "Confirm", "ErrorAction"}, (name, given)


# Tables


def _pascal(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


@cache
def shown_by_type() -> dict[str, set[str]]:
    job = description()["components"]["schemas"]["JobDetail"]
    shown: dict[str, set[str]] = {
        "Hotset.Connection": {"server", "uri", "version", "right", "default"},
        # Duration, and the last three of a run, are added by the module.
        "Hotset.Job": {*job["properties"], "duration"},
        "Hotset.RunDocument": {*RunDocument.model_fields, "results", "warmed", "advice"},
        "Hotset.Disk": set(columns_of(tier_status.DiskStatus)),
        "Hotset.HitRatio": {"disk", *(field.name for field in fields(hits.HitRow))},
        "Hotset.WarmupPlan": set(columns_of(warmup_text.PlannedTarget)),
        "Hotset.Run": {field.name for field in fields(ListingRow)},
        "Hotset.Comparison": {field.name for field in fields(Line)},
        "Hotset.TpccRun": {"run", *Repeat.model_fields},
    }
    shown |= {
        one.type: set(cmdlets.schema(one)["properties"])
        for one in of_operations().values()
        if one.type and one.type not in shown
    }
    return shown


@cache
def views() -> list[ElementTree.Element]:
    return [
        view
        for path in sorted(MODULE.glob("*.format.ps1xml"))
        for view in ElementTree.parse(path).getroot().iter("View")  # noqa: S314
    ]


@of_each(views)
def test_views_show_properties_that_the_objects_have(view: ElementTree.Element) -> None:
    name = view.findtext("ViewSelectedBy/TypeName") or ""
    known = {_pascal(field) for field in shown_by_type()[name]} | {"Server"}
    used = {one.text for one in view.iter("PropertyName")}
    for script in view.iter("ScriptBlock"):
        # Of an object, not of what is in its lists.
        own = re.sub(r"(ForEach|Where)-Object \{[^}]*\}", "", script.text or "")
        used |= set(re.findall(r"\$_\.(\w+)", own))
        assert powershell.faults(powershell.parse_text(script.text or "")) == []
    assert used
    assert used <= known
    heads = len(list(view.iter("TableColumnHeader")))
    assert heads == len(list(view.iter("TableColumnItem")))


@of_each(lambda: (one for one in views() if one.find("TableControl") is not None))
def test_a_table_of_several_servers_says_which(view: ElementTree.Element) -> None:
    """Each of them may have a disk of the same name."""
    assert next(view.iter("PropertyName")).text == "Server"


def test_a_list_calls_a_size_as_a_table_does() -> None:
    labels = [one.text or "" for view in views() for one in view.iter("Label")]
    assert [one for one in labels if one.endswith("Bytes GiB")] == []
    warmed = next(one for one in views() if one.findtext("Name") == "Hotset.WarmupRun")
    assert "CachedShare" in [one.text for one in warmed.iter("PropertyName")]


@pytest.mark.parametrize(
    ("dsn", "has"),
    [
        ("sqlserver://sa:secret@db1/shop", True),
        ("sqlserver://db1/shop?trust=yes&Password=secret", True),
        ("host=db1 password = secret", True),
        ("sqlserver://sa@db1:1433/shop?trust=yes", False),
        ("host=db1 user=app dbname=pwdshop", False),
    ],
)
def test_a_password_in_an_address_is_seen_in_every_form(dsn: str, has: bool) -> None:
    """The patterns are the module's own, in a dialect that both languages share."""
    login = text(own()["Resolve-HotsetLogin"].node)
    refused = login[: login.index("PasswordInDsn")].splitlines()[-2]
    patterns = re.findall(r"-match '([^']+)'", refused)
    assert any(re.search(one, dsn, re.IGNORECASE) for one in patterns) == has


def test_every_type_has_a_view() -> None:
    viewed = {view.findtext("ViewSelectedBy/TypeName") for view in views()}
    returned = {
        one
        for cmdlet in public().values()
        for one in re.findall(r"'(Hotset\.\w+)'", text(_output_type(cmdlet.node)))
    }
    assert returned == viewed
    manifest = (MODULE / "Hotset.psd1").read_text()
    assert all(f"'{path.name}'" in manifest for path in MODULE.glob("*.format.ps1xml"))


def _output_type(node: Node) -> Node | None:
    found = (one for one in inside(node, "attribute") if text(one).startswith("[OutputType("))
    return next(found, None)


# Requests


def _key(request: Request) -> tuple[str, str]:
    return request.method, request.path


def complaints(request: Request, operations: dict[tuple[str, str], Any]) -> list[str]:
    """What the API's description says against a request with every field there is, and against
    each value that a cmdlet allows."""
    operation = operations.get(_key(request))
    if operation is None:
        return [f"there is no {request.method} {request.path}"]
    schemas, required = _accepted(operation)
    found = [f"{name}: it is needed" for name in required if name not in request.fields]
    for name, field in request.fields.items():
        if name not in schemas:
            found.append(f"{name}: there is no such field")
            continue
        schema = _without_null(schemas[name])
        is_list = field.type == "array"
        allowed = [[one] if is_list else one for one in field.allowed]
        for value in allowed or (_sample(field, schema),):
            try:
                jsonschema.validate(value, schema)
            except jsonschema.ValidationError as error:
                found.append(f"{name}: {error.message}")
        of_one = schema["items"] if is_list else schema
        missing = set(of_one.get("enum", field.allowed)) - set(field.allowed)
        if field.allowed and missing:
            found.append(f"{name}: {', '.join(sorted(missing))} cannot be asked for")
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """What a cmdlet may send: it leaves out what is null."""
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    return kinds[0] if len(kinds) == 1 else schema


def _sample(field: Field, schema: dict[str, Any]) -> object:
    """A value of the type that a cmdlet sends: of numbers one with a fraction."""
    least = schema.get("minimum", 0)
    alternatives = (schema, schema.get("items", {}), *schema.get("anyOf", ()))
    patterns = [one.get("pattern", "") for one in alternatives]
    forms = {"^/": "/text", "^ *[0-9]+": "1GiB", "^ *[1-9]": "1:126", "^[1-9]": "1,2"}
    text = next(
        (one for start, one in forms.items() for p in patterns if p.startswith(start)), "text"
    )
    samples = {
        "string": text,
        "array": [text, text],
        "boolean": True,
        "integer": least + 7,
        "number": least + 0.5,
        "numbers": [0.5, 1],
    }
    return samples[field.type]


def _accepted(operation: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """An operation's fields, and which of them are needed."""
    parameters = [one for one in operation.get("parameters", []) if one["in"] in ("path", "query")]
    schemas = {one["name"]: one["schema"] for one in parameters}
    required = [one["name"] for one in parameters if one["required"]]
    if "requestBody" in operation:
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        assert body["additionalProperties"] is False
        schemas |= body["properties"]
        required += body.get("required", [])
    return schemas, required


@cache
def requests() -> list[Request]:
    return [one for one in powershell.requests() if one.path != "/metrics"]


@of_each(requests)
def test_the_api_takes_what_a_cmdlet_sends(request_: Request) -> None:
    assert complaints(request_, operations_served()) == []


def test_a_field_that_the_api_renames_is_told() -> None:
    """Field by field: renamed in the description, it is missed."""
    renamed = 0
    for request in requests():
        for name in request.fields:
            operations = copy.deepcopy({_key(request): operations_served()[_key(request)]})
            operation = operations[_key(request)]
            for one in operation.get("parameters", []):
                one["name"] += "_2" * (one["name"] == name)
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                properties = content["schema"]["properties"]
                if name in properties:
                    properties[f"{name}_2"] = properties.pop(name)
            assert f"{name}: there is no such field" in complaints(request, operations)
            renamed += 1
    assert renamed > 250
    moved = {("put", path): operation for (_, path), operation in operations_served().items()}
    assert all(complaints(request, moved) for request in requests())


def test_every_place_of_the_api_that_a_private_function_names_is_there() -> None:
    named = [
        one
        for path in (MODULE / "Private").glob("*.ps1")
        for one in re.findall(
            rf"\b(Get|Post|Delete)'?,? '{powershell.PREFIX}(\S+)'", path.read_text()
        )
    ]
    assert len(named) > 5
    for method, path in named:
        assert (method.lower(), path) in operations_served()

"""scripts/Hotset and its twin in bash, held against their grammars and the API's own description.

Where there is a PowerShell the module runs for real as well (test_powershell_live).
"""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from tree_sitter import Node

from hotset.harness import tierview
from hotset.harness.api import openapi
from hotset.harness.service import verbs
from hotset.harness.warmups import text as warmup_text
from hotset.reports import hits
from hotset.reports.compare import Line
from hotset.reports.tables import ListingRow
from hotset.tpcc.record import RunResult
from tests import powershell
from tests.powershell import MODULE, Field, Request, inside, text

SCRIPTS = [
    *sorted(path for path in MODULE.rglob("*") if re.fullmatch(r"\.ps[dm]?1", path.suffix)),
    Path(__file__).with_name("powershell_live.ps1"),
]
TWIN = MODULE.parent / "hotset-api.sh"
PUBLIC = powershell.functions("Public")
OWN = {**powershell.functions("Private"), **PUBLIC}
# What both editions have, besides the module's own functions.
CMDLETS = {
    "Add-Member", "Add-Type", "ConvertFrom-Json", "ConvertTo-Json", "Get-ChildItem",
    "Invoke-WebRequest", "Join-Path", "New-Object", "Select-Object", "Set-StrictMode",
    "Start-Sleep", "Write-Progress", "Write-Verbose", "Write-Warning", ".",
}  # fmt: skip
AUTOMATIC = {
    "_", "null", "true", "false", "pscmdlet", "psscriptroot", "psversiontable", "matches",
    "whatifpreference", "erroractionpreference", "progresspreference", "args",
}  # fmt: skip
# Operators of PowerShell 7 that 5.1 cannot read.
NEWER = {"??", "??=", "?.", "?[", "&&", "||"}
OPERATIONS = {
    (method, path): operation
    for path, methods in openapi.describe()["paths"].items()
    for method, operation in methods.items()
}


# The module's text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_every_script_is_powershell_that_both_editions_read(path: Path) -> None:
    root = powershell.parse(path)
    assert powershell.faults(root) == []
    path.read_bytes().decode("ascii")  # 5.1 takes a file without a mark for the local code page
    leaves = [text(one) for one in inside(root) if not one.children]
    assert NEWER.isdisjoint(leaves)
    assert not list(inside(root, "ternary_expression"))


def test_a_text_that_is_no_powershell_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ps1"
    broken.write_text("function Get-It {\n    param([string $Name)\n    if ($Name) { 'a'\n}\n")
    assert powershell.faults(powershell.parse(broken))


def test_the_manifest_exports_the_public_cmdlets_and_each_has_a_file_of_its_name() -> None:
    files = [path.stem for path in sorted((MODULE / "Public").glob("*.ps1"))]
    assert powershell.exported() == files == list(PUBLIC)
    asked = {"Connect-Hotset", "Start-HotsetWarmup", "Wait-HotsetJob", "Get-HotsetJob",
             "Stop-HotsetJob", "Invoke-HotsetTpcc", "Invoke-HotsetTpch", "Get-HotsetHitRatio",
             "Get-HotsetDisk", "Get-HotsetRun", "Compare-HotsetRun", "Set-HotsetSqlMemory",
             "Move-HotsetTempdb"}  # fmt: skip
    assert asked <= set(files)


@pytest.mark.parametrize("cmdlet", PUBLIC.values(), ids=lambda one: one.name)
def test_every_cmdlet_has_help_for_each_parameter_and_an_example(
    cmdlet: powershell.Function,
) -> None:
    for section in ("SYNOPSIS", "EXAMPLE", "OUTPUTS"):
        assert re.search(rf"^ *\.{section}\n +\S", cmdlet.help, re.MULTILINE), section
    assert re.findall(r"^ *\.PARAMETER (\w+)$", cmdlet.help, re.MULTILINE) == list(
        cmdlet.parameters
    )
    # An example's parameters are the cmdlet's own; what stands in brackets is another command.
    for example in re.findall(r"^ *\.EXAMPLE\n +(.+)$", cmdlet.help, re.MULTILINE):
        for call in re.findall(rf"{cmdlet.name}([^|]*)", re.sub(r" \([^)]*\)", "", example)):
            given = re.findall(r" -([A-Z]\w+)", call.partition(")")[0])
            assert set(given) <= {*cmdlet.parameters, "WhatIf", "Confirm"}, example


@pytest.mark.parametrize("function", OWN.values(), ids=lambda one: one.name)
def test_every_variable_is_set_and_every_command_known(function: powershell.Function) -> None:
    parameters = {name.lower() for name in function.parameters}
    assigned = set(_assigned(function.node))
    for variable in inside(function.node, "variable"):
        name = text(variable).strip("${}@").lower()
        if not name.startswith("script:"):
            assert name in parameters | assigned | AUTOMATIC, f"${name} is never set"
    for command in inside(function.node, "command"):
        name = text(next(inside(command, "command_name")))
        assert name in OWN or name in CMDLETS, name
        if name in OWN:
            elements = next(inside(command, "command_elements"), command).children
            flags = [text(one) for one in elements if one.type == "command_parameter"]
            assert {flag.strip("-:") for flag in flags} <= set(OWN[name].parameters), name


def _assigned(node: Node) -> Iterator[str]:
    for kind in ("left_assignment_expression", "script_parameter"):
        for one in inside(node, kind):
            yield text(next(inside(one, "variable"), None)).strip("${}").lower()
    for one in inside(node, "foreach_statement"):
        yield text(next(inside(one, "variable"))).strip("${}").lower()


@pytest.mark.parametrize("cmdlet", PUBLIC.values(), ids=lambda one: one.name)
def test_what_changes_something_takes_whatif(cmdlet: powershell.Function) -> None:
    body = text(cmdlet.node)
    # A POST that answers 200 only reads.
    changes = any(request.method != "get" and "200" not in OPERATIONS[_key(request)]["responses"]
                  for request in cmdlet.requests)  # fmt: skip
    assert changes == ("[CmdletBinding(SupportsShouldProcess" in body)
    assert changes == ("$PSCmdlet.ShouldProcess(" in body)


def test_secrets_are_not_written() -> None:
    """A password goes into a body, and no message is made of one."""
    secret = re.compile(r"(?i)\$(login|token|credential|given|values|request\b(?!\.Uri))")
    for request in powershell.requests():
        assert "password" not in request.fields or request.method == "post"
    for function in OWN.values():
        for command in inside(function.node, "command"):
            assert not (text(command).startswith("Write-") and secret.search(text(command)))
    sender = text(OWN["Invoke-HotsetApi"].node)
    assert re.search(r"Verbose +=  ?\$false", sender)
    assert re.search(r"Debug +=  ?\$false", sender)


# Tables


def _pascal(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


SHOWN = {
    "Hotset.Job": openapi.describe()["components"]["schemas"]["JobDetail"]["properties"],
    "Hotset.Disk": tierview.COLUMNS,
    "Hotset.HitRatio": ("disk", *(field.name for field in fields(hits.HitRow))),
    "Hotset.WarmupPlan": warmup_text._COLUMNS,
    "Hotset.Run": [field.name for field in fields(ListingRow)],
    "Hotset.Comparison": [field.name for field in fields(Line)],
    "Hotset.TpccRun": [field.name for field in fields(RunResult)],
    "Hotset.TpchRun": ("power", "throughput", "note"),
}


def test_tables_show_properties_that_the_objects_have() -> None:
    views = ElementTree.parse(MODULE / "Hotset.format.ps1xml").getroot().iter("View")  # noqa: S314
    found = set()
    for view in views:
        name = view.findtext("ViewSelectedBy/TypeName") or ""
        known = {_pascal(field) for field in SHOWN[name]}
        found.add(name)
        used = {one.text for one in view.iter("PropertyName")}
        for script in view.iter("ScriptBlock"):
            used |= set(re.findall(r"\$_\.(\w+)", script.text or ""))
        assert used <= known, name
        heads = len(list(view.iter("TableColumnHeader")))
        assert heads == len(list(view.iter("TableColumnItem")))
    assert found == set(SHOWN)


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
        schema = schemas.get(name)
        if schema is None:
            found.append(f"{name}: there is no such field")
            continue
        for value in field.allowed or (_sample(field, schema),):
            try:
                jsonschema.validate(value, schema)
            except jsonschema.ValidationError as error:
                found.append(f"{name}: {error.message}")
        missing = set(schema.get("enum", field.allowed)) - set(field.allowed)
        if field.allowed and missing:
            found.append(f"{name}: {', '.join(sorted(missing))} cannot be asked for")
    return found


def _sample(field: Field, schema: dict[str, Any]) -> object:
    """A value of the type that a cmdlet sends: of numbers one with a fraction."""
    least = schema.get("minimum", 0)
    samples = {"string": "text", "array": ["a", "b"], "boolean": True,
               "integer": least + 7, "number": least + 0.5}  # fmt: skip
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


@pytest.mark.parametrize(
    "request_", powershell.requests(), ids=lambda one: f"{one.sender} {one.path}"
)
def test_the_api_takes_what_a_cmdlet_sends(request_: Request) -> None:
    assert complaints(request_, OPERATIONS) == []


def test_a_field_that_the_api_renames_is_told() -> None:
    """Field by field: renamed in the description, it is missed."""
    renamed = 0
    for request in powershell.requests():
        for name in request.fields:
            operations = copy.deepcopy({_key(request): OPERATIONS[_key(request)]})
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
    assert renamed > 70
    moved = {("put", path): operation for (_, path), operation in OPERATIONS.items()}
    assert all(complaints(request, moved) for request in powershell.requests())


def test_every_field_of_a_verb_can_be_asked_for() -> None:
    for request in powershell.requests():
        verb = verbs.every().get(tuple(request.path.strip("/").split("/")))
        if verb is not None and verb.words != ("runs", "compare"):
            assert set(request.fields) == set(verb.model.model_fields), request.path


# The twin


def _twin() -> dict[str, list[Request]]:
    """Its commands and their requests, from its one table."""
    table = TWIN.read_text().replace("\\\n", " ").partition("case $command in\n    connect)")[2]
    kinds = {"#": "number", "?": "boolean", "+": "array"}  # as its own comment says
    found: dict[str, list[Request]] = {}
    for name, body in re.findall(r"^    ([a-z-]+)\)\n(.*?)^        ;;$", f"    connect){table}",
                                 re.MULTILINE | re.DOTALL):  # fmt: skip
        for method, path, words in re.findall(
            r"(?:call|finish) (GET|POST) '?(/[a-z/{}-]+)'?([^|]*?) --", body
        ):
            fields_ = {word.rstrip("#?+"): Field(kinds.get(word[-1], "string"))
                       for word in words.split()}  # fmt: skip
            found.setdefault(name, []).append(Request(name, method.lower(), path, fields_))
    return found


def test_the_twin_has_the_same_steps_with_the_same_fields() -> None:
    twin = _twin()
    for cmdlet in PUBLIC.values():
        verb, noun = cmdlet.name.split("-Hotset") if "-Hotset" in cmdlet.name else ("", "")
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", f"{verb}-{noun}".rstrip("-")).lower()
        if name == "wait-job":
            assert "\n    wait-job)\n" in TWIN.read_text()
            continue
        ours = [(_key(one), _types(one)) for one in cmdlet.requests]
        assert sorted(ours) == sorted((_key(one), _types(one)) for one in twin.pop(name)), name
    assert twin == {}


def _types(request: Request) -> list[tuple[str, str]]:
    """Its fields; bash has one kind of numbers."""
    return sorted((name, field.type.replace("integer", "number"))
                  for name, field in request.fields.items())  # fmt: skip


def test_the_twins_shell_is_clean() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    done = subprocess.run(["shellcheck", str(TWIN)], capture_output=True, text=True, check=False)
    assert done.stdout == ""

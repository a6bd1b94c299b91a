"""The bill of materials of a release, as CycloneDX 1.5 has it, and its licences as a table.

uv exports the Python part, of the lock file. (cyclonedx-py lists what is installed here: also what
only tests need, nothing that other systems need, and neither crates nor programs.)
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from .crates import Crate

_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # RFC 9562: of URLs
Bill = dict[str, Any]


def python_bill(root: Path) -> Bill:
    """Return the bill of the base and all extras, as uv has resolved it."""
    argv = ["uv", "export", "--quiet", "--locked", "--no-dev", "--all-extras"]
    argv += ["--format=cyclonedx1.5"]
    done = subprocess.run(argv, check=True, cwd=root, capture_output=True)
    bill: Bill = json.loads(done.stdout)
    return bill


def complete(
    bill: Bill, version: str, crates: Iterable[Crate], programs: Iterable[Path], epoch: int
) -> Bill:
    """With the crates that are in the programs, licences, and nothing that another build would say
    in another way.

    :param bill: of :func:`python_bill`.
    :param epoch: seconds; in place of the time at which it is made.
    """
    crates = sorted(crates)
    parts = [*(_python(component) for component in bill["components"]), *map(_crate, crates)]
    files = [_program(program, version) for program in sorted(programs)]
    whole = bill["metadata"]["component"]
    at = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    owned = [
        dependency for dependency in bill["dependencies"] if dependency["ref"] == whole["bom-ref"]
    ]
    for dependency in owned:
        dependency["dependsOn"] = [
            *dependency.get("dependsOn", ()),
            *(part["bom-ref"] for part in files),
        ]
    made = [{"ref": file["bom-ref"], "dependsOn": [c.purl for c in crates]} for file in files]
    purl = f"pkg:pypi/hotset@{version}"
    return {
        **bill,
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, f'{purl}/{at}')}",
        "metadata": {
            "timestamp": at,
            "component": {**whole, "version": version, "purl": purl, **_licences("Apache-2.0")},
        },
        "components": [*parts, *files],
        "dependencies": [*bill["dependencies"], *made],
    }


def table(bill: Bill) -> str:
    """Each dependency and its licence, as Markdown; one that states none is said to."""
    lines = ["| package | version | licence |", "|---|---|---|"]
    for component in bill["components"]:
        if component["type"] == "library":
            lines.append(
                f"| {component['purl'].split('@')[0]} | {component['version']} |"
                f" {_describe(component)} |"
            )
    return "\n".join(lines) + "\n"


def _describe(component: Mapping[str, Any]) -> str:
    for licence in component.get("licenses", ()):
        return str(licence.get("expression") or licence["license"]["name"])
    return "not stated"


def _python(component: Mapping[str, Any]) -> Bill:
    try:
        fields = metadata(component["name"])
    except PackageNotFoundError:
        return dict(component)  # for another system than this
    if "License-Expression" in fields:
        return {**component, **_licences(fields["License-Expression"])}
    classes = [
        classifier
        for classifier in fields.get_all("Classifier", [])
        if classifier.startswith("License ::") and classifier != "License :: OSI Approved"
    ]
    name = ", ".join(classifier.rpartition(" :: ")[2] for classifier in classes)
    if not name and "License" in fields:
        name = fields["License"].partition("\n")[0]
    return {**component, "licenses": [{"license": {"name": name}}]} if name else dict(component)


def _crate(crate: Crate) -> Bill:
    component = {
        "type": "library",
        "bom-ref": crate.purl,
        "name": crate.name,
        "version": crate.version,
    }
    return {**component, "purl": crate.purl, **(_licences(crate.licence) if crate.licence else {})}


def _program(file: Path, version: str) -> Bill:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {
        "type": "application",
        "bom-ref": f"program:{file.name}",
        "name": file.name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


def _licences(expression: str) -> Bill:
    return {"licenses": [{"expression": expression}]}

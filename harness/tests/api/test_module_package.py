"""The PowerShell module as files: a console's zip, and the package of a release."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree
from zipfile import ZipFile

from hotset import __version__
from hotset.api.clients import MODULE, make
from hotset.api.clients.package import contents, nupkg, zipped

_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def opened(content: bytes) -> ZipFile:
    return ZipFile(io.BytesIO(content))


def test_the_zip_is_the_module_with_all_that_is_generated() -> None:
    with opened(zipped()) as archive:
        names = set(archive.namelist())
        assert {f"Hotset/{path.relative_to(MODULE)}" for path in make()} <= names
        manifest = archive.read("Hotset/Hotset.psd1").decode("ascii")
    assert f"ModuleVersion        = '{__version__}'" in manifest
    # All that the manifest and the module load is there.
    assert {f"Hotset/{name}" for name in re.findall(r"'([\w.]+\.ps[\w]+)'", manifest)} <= names


def test_the_package_has_the_structure_that_nuget_reads() -> None:
    """It was not installed from a repository here: what a reader of OPC packages follows is."""
    with opened(nupkg()) as archive:
        names = archive.namelist()
        read = {name: archive.read(name) for name in names}
    assert len(set(names)) == len(names)
    assert {name: read[name] for name in contents()} == contents()
    kinds = {
        one.attrib["Extension"]: one.attrib["ContentType"]
        for one in ElementTree.fromstring(read["[Content_Types].xml"])  # noqa: S314 - our own
    }
    assert {name.rpartition(".")[2] for name in names} - {"xml"} <= kinds.keys()
    assert kinds["rels"] == "application/vnd.openxmlformats-package.relationships+xml"
    relations = {
        one.attrib["Type"].rpartition("/")[2]: one.attrib["Target"].removeprefix("/")
        for one in ElementTree.fromstring(read["_rels/.rels"])  # noqa: S314
    }
    assert relations["manifest"] == "Hotset.nuspec"
    core = ElementTree.fromstring(read[relations["core-properties"]])  # noqa: S314
    assert core.findtext(f"{{{_PACKAGE}/metadata/core-properties}}version") == __version__
    assert relations["core-properties"].endswith(".psmdcp")
    said = {
        one.tag.rpartition("}")[2]: one.text
        for one in ElementTree.fromstring(read["Hotset.nuspec"])[0]  # noqa: S314
    }
    assert (said["id"], said["version"]) == ("Hotset", __version__)
    # By this tag a repository of PSResourceGet tells a module from a script.
    assert "PSModule" in (said["tags"] or "").split()
    assert said["description"]
    assert said["authors"]


def test_the_same_module_is_the_same_bytes() -> None:
    assert nupkg(1_700_000_000) == nupkg(1_700_000_000)
    assert zipped() == zipped.__wrapped__()

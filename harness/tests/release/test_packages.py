"""The Linux packages: one is built for this Python alone, and looked into; scripts of all are read.

What dpkg makes of them is tried in whole systems by `release.bare.try_packages`.
"""

from __future__ import annotations

import ast
import gzip
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from hotset import __version__
from hotset.api.clients.package import contents
from hotset.block import label
from hotset.core import extras
from hotset.core.extras import Extra
from hotset.core.machines import needrestart
from hotset.disk.boot import schedules, systemd_unit
from release import container, entry, modules, packages
from release.bare import try_packages
from release.dist import package
from release.programs import PROGRAMS, CannotBuildError

ROOT = Path(__file__).parents[3]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
EPOCH = 1_700_000_000
SMALL = (replace(packages.PACKAGES[0], extras=()),)
"""Without the console's modules, whose bytes are most of the package."""
SCRIPTS = sorted(
    f"packaging/{one.name}/{script}"
    for one in packages.PACKAGES
    for script in ("postinst", "prerm", "postrm")
    if (ROOT / "packaging" / one.name / script).exists()
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> packages.Release:
    """Of this checkout's programs, for this Python alone, whose wheels are here already."""
    programs, dist = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("wheel")
    for one in PROGRAMS:
        shutil.copy(ROOT / one.crate / "target/release" / one.name, programs / one.name)
    wheel = package(dist, programs, EPOCH)
    text = dist / "CHANGELOG.md"
    text.write_text("# Changes\n")
    pythons = (PYTHON,)
    return packages.Release(ROOT, wheel, __version__, "x86_64", EPOCH, (text,), pythons, "none")


@pytest.fixture(scope="module")
def deb(described: packages.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    dist = tmp_path_factory.mktemp("dist")
    return packages.build(described, dist / "work", dist, SMALL, ("deb",))[0]


@pytest.fixture(scope="module")
def laid(described: packages.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the container image has beside Debian's packages; without extras, as above."""
    folder = tmp_path_factory.mktemp("container") / "laid"
    container.lay(folder, described.wheel, described.machine, [])
    return folder


def said(*argv: str) -> str:
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_has_all_that_runs_and_nothing_that_anybody_else_may_write(deb: Path) -> None:
    held = {}
    for line in said("dpkg-deb", "--contents", str(deb)).splitlines():
        mode, owner, _, _, _, name, *link = line.split()
        held[name.removeprefix(".")] = (mode, link[1] if link else "")
        assert owner == "root/root"
        assert mode[0] == "l" or mode[8] == "-", line
    assert held["/usr/bin/hotset"][1] == "../lib/hotset/bin/hotset"
    assert held[f"/usr/lib/hotset/lib/python{PYTHON}"][1] == "python3"
    site = "/usr/lib/hotset/lib/python3/site-packages"
    for one in PROGRAMS:
        assert held[f"{site}/hotset/programs/{one.name}"][0] == "-rwxr-xr-x"
    assert held["/etc/hotset/console/environment"][0] == "-rw-r-----"
    for name in (
        f"{site}/hotset/cli/__init__.py",
        f"{site}/typer/__init__.py",
        "/usr/lib/systemd/system/hotset-console.service",
        "/usr/share/bash-completion/completions/hotset",
        "/usr/share/doc/hotset/copyright",
        "/usr/share/fish/vendor_completions.d/hotset.fish",
        "/usr/share/hotset/compose.yaml",
        "/usr/share/hotset/grafana/hotset-rules.yml",
        "/usr/share/hotset/grafana/hotset.json",
        "/usr/share/man/man1/hotset-tier-create.1.gz",
        "/usr/share/zsh/vendor-completions/_hotset",
    ):
        assert held[name][0] == "-rw-r--r--", name
    assert held["/usr/share/hotset/scripts/sqlserver.sh"][0] == "-rwxr-xr-x"
    assert held["/usr/share/hotset/experiments"][1] == f"{site}/hotset/experiments"
    assert f"{site}/hotset/experiments/demo.toml" in held
    assert not [one for one in held if re.search(r"/(bin/typer|setuptools)$", one)]
    assert not [one for one in held if one.startswith(("/opt", "/usr/local", "/var"))]


def test_wheel_package_and_container_have_the_powershell_module(
    described: packages.Release, deb: Path, laid: Path
) -> None:
    """A console of each of them hands it out."""
    site = "./usr/lib/hotset/lib/python3/site-packages"
    with zipfile.ZipFile(described.wheel) as opened:
        held = {"wheel": set(opened.namelist())}
    files = said("dpkg-deb", "--contents", str(deb)).splitlines()
    held["package"] = {line.split()[5].removeprefix(f"{site}/") for line in files}
    packed = {str(file.relative_to(laid)) for file in laid.rglob("*") if file.is_file()}
    held["container"] = {
        name.removeprefix(f"{container.SITE}/")
        for name in packed
        if not container.LEFT_OUT.match(name)
    }
    expected = {f"hotset/scripts/Hotset/{name}" for name in contents()}
    assert len(expected) > 10
    assert {kind: expected - names for kind, names in held.items() if expected - names} == {}


def test_the_package_asks_for_what_hotset_needs_and_for_no_dmeventd(deb: Path) -> None:
    fields = dict(
        re.findall(r"^([A-Z][\w-]+): (.*)$", said("dpkg-deb", "--field", str(deb)), re.MULTILINE)
    )
    assert (fields["Version"], fields["Architecture"]) == (__version__, "amd64")
    minor = int(PYTHON.partition(".")[2])
    assert f"python3 (>= {PYTHON}), python3 (<< 3.{minor + 1})" in fields["Depends"]
    assert fields["Recommends"] == "open-iscsi, thin-provisioning-tools"
    everything = " ".join(fields.values())
    assert not re.search(r"lvm2|dmeventd|debconf", everything)
    assert said("dpkg-deb", "--info", str(deb), "conffiles").split() == [
        "/etc/hotset/console/environment",
        "/etc/needrestart/conf.d/hotset-package.conf",
    ]


def test_the_package_asks_for_every_library_that_its_modules_load(
    deb: Path, tmp_path: Path
) -> None:
    """numpy's libstdc++ was left to whatever else had brought it."""
    of_packages = {"libgcc_s.so.1": "libgcc-s1", "libstdc++.so.6": "libstdc++6"}
    of_packages |= {"libz.so.1": "zlib1g"}
    of_libc = re.compile(r"(lib(c|m|dl|rt|resolv|pthread|util)|ld-linux-x86-64)\.so\.\d")
    said("dpkg-deb", "--extract", str(deb), str(tmp_path))
    site = Path(numpy.__file__).parents[1]
    files = [tmp_path.rglob("*"), (site / "numpy").rglob("*"), (site / "numpy.libs").rglob("*")]
    own = [one for each in files for one in each if one.is_file() and not one.is_symlink()]
    programs = {one.name: one for one in own if one.read_bytes()[:4] == b"\x7fELF"}
    text = said("readelf", "--dynamic", "--wide", *map(str, programs.values()))
    needed = set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", text)) - programs.keys()
    asked = said("dpkg-deb", "--field", str(deb), "Depends").replace(",", " ").split()
    assert {of_packages[one] for one in needed if not of_libc.match(one)} <= set(asked)
    assert needed >= of_packages.keys()


def test_what_is_unpacked_runs_with_the_systems_python_alone(deb: Path, tmp_path: Path) -> None:
    """For which this Python stands in, as it need not be the system's."""
    said("dpkg-deb", "--extract", str(deb), str(tmp_path))
    prefix = tmp_path / packages.PREFIX
    (prefix / "bin/python3").unlink()
    (prefix / "bin/python3").symlink_to(Path(sys.base_exec_prefix, "bin", f"python{PYTHON}"))
    config = prefix / "pyvenv.cfg"
    home = f"home = {sys.base_exec_prefix}/bin"
    config.write_text(config.read_text().replace("home = /usr/bin", home))
    code = (
        "import hotset.cli, sys; from hotset.block import programs;"
        "from importlib.metadata import version;"
        "print(sys.prefix, version('hotset'), programs.find_engine())"
    )
    found = said(str(prefix / "bin/python3"), "-I", "-c", code).split()
    programs = prefix / "lib/python3/site-packages/hotset/programs"
    assert found == [str(prefix), __version__, str(programs / "hotset-engine")]
    assert (tmp_path / "usr/bin/flashdev").resolve() == programs / "flashdev"
    assert (programs / "flashdev").is_file()
    assert (tmp_path / "etc/needrestart/conf.d/hotset-package.conf").read_text(
        encoding="utf-8"
    ) == needrestart.RULE
    page = gzip.decompress((tmp_path / "usr/share/man/man1/hotset.1.gz").read_bytes())
    assert page.startswith(b'.\\" Generated')


def test_the_same_release_makes_the_same_package(
    deb: Path, described: packages.Release, tmp_path: Path
) -> None:
    """At another place."""
    (again,) = packages.build(described, tmp_path / "another", tmp_path, SMALL, ("deb",))
    assert again.name == deb.name
    assert again.read_bytes() == deb.read_bytes()


@pytest.mark.parametrize("package", packages.PACKAGES, ids=lambda one: one.name)
def test_no_rpm_has_the_name_of_the_computer_that_made_it(package: packages.Package) -> None:
    """nfpm writes it where nothing else is named, and two computers made two packages."""
    described = (ROOT / f"packaging/{package.name}.yaml").read_text(encoding="utf-8")
    assert "rpm:\n  buildhost: localhost " in described


@pytest.mark.parametrize("script", SCRIPTS)
def test_maintainer_scripts_are_clean_posix_shell(script: str) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    path = ROOT / script
    assert path.read_text().startswith("#!/bin/sh\n")
    done = subprocess.run(["shellcheck", str(path)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_an_old_python_reads_the_launcher_and_says_what_it_lacks(tmp_path: Path) -> None:
    text = entry.in_package(ROOT / "packaging/hotset")
    ast.parse(text, feature_version=(3, 7))
    (tmp_path / "python3.99").mkdir()
    launcher = tmp_path / "launcher.py"
    launcher.write_text(text.replace(f"{extras.PACKAGED}/lib", str(tmp_path)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(launcher), "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert f"is python{PYTHON}, and this package has what it needs for python3.99:" in done.stderr


def test_the_walks_give_no_command_that_there_is_not() -> None:
    """One that is gone is refused with the code of a prerequisite that is missing."""
    reference = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    known = re.findall(r"^## (hotset .*)$", reference, re.MULTILINE)
    acts = [one.command for walk in try_packages.WALKS.values() for one in walk]
    given = [each for one in acts for each in re.findall(r"\bhotset [a-z].*", one)]
    assert len(given) > 30
    assert [one for one in given if not one.startswith(tuple(known))] == []


def test_a_purge_knows_what_hotset_writes() -> None:
    """By the same names, marks and places as hotset itself."""
    text = (ROOT / "packaging/hotset/postrm").read_text(encoding="utf-8")
    first, size = int(label._FIRST), int(label._COPY)
    assert f"bs={size // 1024}k skip={first // size} count=2" in text
    (mark,) = re.findall(r"-e '\^(HOTSET-\S+LABEL)'", text)
    pattern = mark.replace("\\", "")
    for magic in (label.MAGIC, *label._MAGICS_BEFORE_RELEASE):
        assert re.fullmatch(pattern, magic)
    assert f"units={systemd_unit.FOLDER}\n" in text
    assert str(needrestart.CONF) in text
    assert f"{schedules.PREFIX}*.timer" in text
    assert str(schedules.SNAPSHOTS) in text


def test_programs_of_wheels_are_where_their_callers_look(tmp_path: Path) -> None:
    """The container was without the generator of TPC-H's data."""
    scripts, binaries = tmp_path / "site/bin", tmp_path / "bin"
    scripts.mkdir(parents=True)
    shutil.copy("/bin/true", scripts / "generator")
    (scripts / "script").write_text("#!/home/me/python\n")
    modules.move_programs(tmp_path / "site", binaries)
    assert [one.name for one in binaries.iterdir()] == ["generator"]
    assert not scripts.exists()
    modules.move_programs(tmp_path / "site", binaries)


def test_what_two_pythons_would_have_differently_is_refused(tmp_path: Path) -> None:
    for name, held in (("one", "1"), ("other", "2")):
        (tmp_path / name / "some.dist-info").mkdir(parents=True)
        (tmp_path / name / "some.dist-info/WHEEL").write_text(held)
        (tmp_path / name / "some.py").write_text("same")
        (tmp_path / name / f"some.{name}.so").write_text(held)
    into = tmp_path / "into"
    modules.merge(tmp_path / "one", into)
    modules.merge(tmp_path / "other", into)
    assert sorted(one.name for one in into.iterdir()) == [
        *("some.dist-info", "some.one.so", "some.other.so", "some.py")
    ]
    (tmp_path / "other/some.py").write_text("another")
    with pytest.raises(CannotBuildError, match=r"some\.py is another for another Python"):
        modules.merge(tmp_path / "other", into)


@pytest.mark.skipif(
    not Path(sysconfig.get_path("include"), "Python.h").exists(), reason="Python without Python.h"
)
def test_what_has_no_wheel_is_compiled_once_for_all_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package for arm64 could not be made. Here for this kind of computer, so that it runs."""
    machine = platform.machine()
    monkeypatch.setattr(modules, "_WITHOUT_WHEEL", {machine: ("hdrhistogram",)})
    wanted = modules.requirements(ROOT, (Extra.BENCH,), packages.PYTHONS[0])
    only = {name: wanted[name] for name in ("hdrhistogram", "pydantic")}
    into = tmp_path / "into"
    modules.install(only, [], ("3.11", "3.13"), machine, into, tmp_path / "work")
    assert [one.name for one in into.glob("pyhdrh*")] == ["pyhdrh.abi3.so"]
    code = (
        "from hdrh.histogram import HdrHistogram as H; import pyhdrh; h = H(1, 10**6, 3);"
        "h.record_value(4711); print(pyhdrh.__file__, H.decode(h.encode()).get_max_value())"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(
        argv, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(into)}
    )
    assert done.stdout.split() == [str(into / "pyhdrh.abi3.so"), "4711"]


def test_all_pythons_get_the_versions_of_the_oldest() -> None:
    """numpy is in the lock file twice, and one folder cannot hold both."""
    wanted = modules.requirements(ROOT, (Extra.CONSOLE,), packages.PYTHONS[0])
    assert wanted["numpy"].startswith("numpy==2.4.")
    assert all(" --hash=sha256:" in line and ";" not in line for line in wanted.values())
    assert not wanted.keys() & {"setuptools", "pbr", "colorama", "hotset"}


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ((Extra.BENCH, Extra.REPORT), "apt-get install hotset-bench"),
        ((Extra.SEARCH,), "uv tool install 'hotset[search]'"),
    ],
)
def test_who_installed_the_package_is_told_of_packages(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[Extra, ...], told: str
) -> None:
    monkeypatch.setattr(sys, "prefix", extras.PACKAGED)
    assert told in extras.missing_extra(*missing)


def test_without_nfpm_the_release_names_it(
    described: packages.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(CannotBuildError, match=r"nfpm, which makes \.deb and \.rpm, is missing"):
        packages.build(described, tmp_path / "work", tmp_path)

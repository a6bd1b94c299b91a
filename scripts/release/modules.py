"""Python modules of a package, for several versions of Python in one folder.

What is compiled has the version in its name (``_core.cpython-311-x86_64-linux-gnu.so``), and the
rest is the same, as long as all of them get the same versions of everything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from email import message_from_string
from pathlib import Path

from packaging.requirements import Requirement

from hotset.core.extras import Extra

from .programs import CannotBuildError

NOT_NEEDED = frozenset(("pbr", "setuptools", "mssql-python-odbc"))
"""hdrhistogram names what it is built with; Microsoft's driver is not ours to pass on."""
_PER_PYTHON = frozenset(("numpy/__config__.py",))
"""Says how it was compiled, and for which Python: nothing else is made of it."""
_WITHOUT_WHEEL = {"aarch64": ("hdrhistogram",)}
"""Has wheels for x86_64 alone; its one C file is compiled here, by :func:`_compile`."""
OF_THE_INSTALLATION = ("RECORD", "REQUESTED", "INSTALLER", "direct_url.json", "uv_cache.json")
"""Files that tell where and when a distribution was installed."""
GLIBC = "manylinux_2_34"
"""Least glibc that the wheel's own programs need (`wheel_programs.py`)."""


def requirements(root: Path, extras: Iterable[Extra], python: str) -> dict[str, str]:
    """The distributions of the base and these extras as ``uv.lock`` has them, with their hashes.

    :param python: the oldest: the others take what fits it.
    """
    argv = ["uv", "export", "--quiet", "--locked", "--no-dev", "--no-emit-project", "--no-header"]
    argv += ["--no-annotate", *(f"--extra={extra}" for extra in extras)]
    done = subprocess.run(argv, check=False, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise CannotBuildError(f"uv export: {done.stderr.strip()}")
    here = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    lines = {}
    for line in done.stdout.replace("\\\n", " ").splitlines():
        text, *hashes = line.split(" --hash=")
        requirement = Requirement(text.strip())
        if requirement.name not in NOT_NEEDED and (
            requirement.marker is None or requirement.marker.evaluate(here)
        ):
            hashed = " ".join(f"--hash={each.strip()}" for each in hashes)
            lines[requirement.name] = f"{requirement.name}{requirement.specifier} {hashed}"
    return lines


def install(
    wanted: Mapping[str, str],
    wheels: Sequence[Path],
    pythons: Sequence[str],
    machine: str,
    into: Path,
    work: Path,
    glibc: str = GLIBC,
) -> None:
    """Install them for each Python, into one folder.

    :param wanted: of :func:`requirements`.
    :param pythons: the oldest first.
    :param wheels: installed as well, without what they ask for.
    :param machine: ``x86_64``.
    :param work: a folder, which is made.
    :param glibc: of the oldest system it is to run on.
    :raises CannotBuildError: there is no wheel for one of them, or two would not fit one folder.
    """
    work.mkdir(parents=True)
    compiled = [wanted[name] for name in _WITHOUT_WHEEL.get(machine, ()) if name in wanted]
    for python in pythons:
        target = work / python
        argv = ["uv", "pip", "install", "--quiet", "--no-deps", f"--target={target}"]
        argv += [f"--python={sys.executable}", f"--python-version={python}"]
        argv += [f"--python-platform={machine}-{glibc}", "--link-mode=copy"]
        with_wheel = [line for line in wanted.values() if line not in compiled]
        _run([*argv, "--only-binary=:all:", *_list(work / "wheels.txt", with_wheel)])
        if compiled:
            _compile([*argv, *_list(work / "sources.txt", compiled)], machine, pythons[0])
        if wheels:
            _run([*argv, "--only-binary=:all:", *map(str, wheels)])
        _strip(target)
        merge(target, into)
        shutil.rmtree(target)


def _compile(argv: Sequence[str], machine: str, python: str) -> None:
    """Install from source, for a machine that this one need not be.

    It keeps to Python's stable interface, so that one file is for all versions; what builds it is
    what the lock file has.

    :param argv: of `uv pip install`.
    :param python: the oldest.
    """
    oldest = int(python.partition(".")[2])
    gcc = f"{machine}-linux-gnu-gcc"
    if not shutil.which(gcc):
        raise CannotBuildError(f"{gcc} is missing: apt install gcc-{machine}-linux-gnu")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise CannotBuildError(
            f"{sys.executable} has no Python.h, for {machine}: uv sync --locked --all-extras"
            " --managed-python"
        )
    environment = {
        "CC": gcc,
        "LDSHARED": f"{gcc} -shared -s",
        "CFLAGS": f"-O2 -g0 -DPy_LIMITED_API=0x03{oldest:02x}0000",
        "SETUPTOOLS_EXT_SUFFIX": ".abi3.so",
    }
    options = f"--py-limited-api=cp3{oldest} --plat-name=linux_{machine}"
    _run(
        [
            # uv would take a wheel that it has built before for one that fits.
            *(*argv, "--no-cache", "--no-build-isolation", "--no-binary=:all:"),
            f"--config-setting=--build-option={options}",
        ],
        environment,
    )


def _list(file: Path, lines: Iterable[str]) -> list[str]:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["--require-hashes", f"--requirements={file}"]


def _run(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    whole = os.environ | (environment or {})
    done = subprocess.run(argv, check=False, env=whole, capture_output=True, text=True)
    if done.returncode:
        raise CannotBuildError(f"{' '.join(argv)}: {done.stderr.strip()}")


def move_programs(site: Path, binaries: Path) -> None:
    """Put programs of wheels where their callers look, beside Python; scripts, which would name a
    Python of this computer, go."""
    scripts = site / "bin"
    for program in scripts.glob("*"):
        if program.read_bytes()[:4] == b"\x7fELF":
            binaries.mkdir(parents=True, exist_ok=True)
            shutil.move(program, binaries / program.name)
    shutil.rmtree(scripts, ignore_errors=True)


def _strip(folder: Path) -> None:
    """Remove the records of the installation, and the libraries' own tests."""
    (folder / ".lock").unlink(missing_ok=True)
    for info in folder.glob("*.dist-info"):
        for name in OF_THE_INSTALLATION:
            (info / name).unlink(missing_ok=True)
    for tests in sorted(folder.rglob("tests")):
        if tests.is_dir():
            shutil.rmtree(tests)


def merge(folder: Path, into: Path) -> None:
    """:raises CannotBuildError: a file would be another for another Python."""
    into.mkdir(parents=True, exist_ok=True)
    for source in sorted(folder.rglob("*")):
        path = source.relative_to(folder)
        target = into / path
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists():
            shutil.move(source, target)
        elif path.parts[0].endswith(".dist-info") or str(path) in _PER_PYTHON:
            continue  # the tags of the wheel; how it was built
        elif path.parts[0] != "bin" and source.read_bytes() != target.read_bytes():
            raise CannotBuildError(
                f"{path} is another for another Python, so that one folder cannot hold both: look"
                " whether anything reads it, and name it in scripts/release/modules.py"
            )


def licences(folder: Path, installed: Path) -> Iterable[str]:
    """Yield the licence of each installed distribution, as a part of Debian's file `copyright`.

    :param installed: where the folder will be.
    """
    for info in sorted(folder.glob("*.dist-info")):
        fields = message_from_string((info / "METADATA").read_text(encoding="utf-8"))
        name, place = fields["Name"], installed / info.name
        authors = fields["Author-email"] or fields["Author"] or f"the authors of {name}"
        terms = fields["License-Expression"] or (fields["License"] or "").partition("\n")[0]
        classes = [
            classifier
            for classifier in fields.get_all("Classifier", [])
            if classifier.startswith("License ::")
        ]
        terms = (
            terms
            or ", ".join(classifier.rpartition(" :: ")[2] for classifier in classes)
            or "see there"
        )
        yield (
            f"\nFiles: {place}/* and the modules of {name} {fields['Version']}\n"
            f"Copyright: {' '.join(authors.split())}\n"
            f"License: {terms}\n Its text is in {place}.\n"
        )

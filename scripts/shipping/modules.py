"""Python modules of a package, for several versions of Python in one folder.

What is compiled has the version in its name (``_core.cpython-311-x86_64-linux-gnu.so``), and the
rest is the same, as long as all of them get the same versions of everything.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from email import message_from_string
from pathlib import Path

from packaging.requirements import Requirement

from hotset.core.extras import Extra

from .programs import CannotBuildError

NOT_NEEDED = frozenset(("pbr", "setuptools"))
"""hdrhistogram names what it is built with."""
_PER_PYTHON = frozenset(("numpy/__config__.py",))
"""Says how it was compiled, and for which Python: nothing else is made of it."""
OF_THE_INSTALLATION = ("RECORD", "REQUESTED", "INSTALLER", "direct_url.json", "uv_cache.json")
"""Files that tell where and when a distribution was installed."""
_GLIBC = "manylinux_2_34"
"""As the wheel's own programs ask for, at least (`wheel_programs.py`)."""


def requirements(root: Path, extras: Iterable[Extra], python: str) -> dict[str, str]:
    """The distributions of the base and these extras as ``uv.lock`` has them, with their hashes.

    :param python: the oldest: the others take what fits it.
    """
    argv = ["uv", "export", "--quiet", "--locked", "--no-dev", "--no-emit-project", "--no-header"]
    argv += ["--no-annotate", *(f"--extra={one}" for one in extras)]
    done = subprocess.run(argv, check=False, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise CannotBuildError(f"uv export: {done.stderr.strip()}")
    here = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    found = {}
    for line in done.stdout.replace("\\\n", " ").splitlines():
        text, *hashes = line.split(" --hash=")
        one = Requirement(text.strip())
        if one.name not in NOT_NEEDED and (one.marker is None or one.marker.evaluate(here)):
            hashed = " ".join(f"--hash={each.strip()}" for each in hashes)
            found[one.name] = f"{one.name}{one.specifier} {hashed}"
    return found


def install(
    wanted: Mapping[str, str],
    wheels: Sequence[Path],
    pythons: Iterable[str],
    machine: str,
    into: Path,
    work: Path,
) -> None:
    """Install them for each Python, into one folder.

    :param wanted: of :func:`requirements`.
    :param wheels: installed as well, without what they ask for.
    :param machine: ``x86_64``.
    :raises CannotBuildError: there is no wheel for one of them, or two would not fit one folder.
    """
    listed = work / "requirements.txt"
    work.mkdir(parents=True)
    listed.write_text("\n".join(wanted.values()) + "\n", encoding="utf-8")
    for python in pythons:
        one = work / python
        argv = ["uv", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
        argv += [f"--target={one}", f"--python-version={python}"]
        argv += [f"--python-platform={machine}-{_GLIBC}", "--link-mode=copy"]
        _run([*argv, "--require-hashes", f"--requirements={listed}"])
        if wheels:
            _run([*argv, *map(str, wheels)])
        _strip(one)
        merge(one, into)
        shutil.rmtree(one)
    listed.unlink()


def _run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        raise CannotBuildError(f"{' '.join(argv)}: {done.stderr.strip()}")


def _strip(folder: Path) -> None:
    """What only the installation told, and the libraries' own tests."""
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
    for one in sorted(folder.rglob("*")):
        path = one.relative_to(folder)
        there = into / path
        if one.is_dir():
            there.mkdir(parents=True, exist_ok=True)
        elif not there.exists():
            shutil.move(one, there)
        elif path.parts[0].endswith(".dist-info") or str(path) in _PER_PYTHON:
            continue  # the tags of the wheel; how it was built
        elif path.parts[0] != "bin" and one.read_bytes() != there.read_bytes():
            raise CannotBuildError(
                f"{path} is another for another Python, so that one folder cannot hold both: look"
                " whether anything reads it, and name it in scripts/shipping/modules.py"
            )


def licences(folder: Path, installed: Path) -> Iterable[str]:
    """What was installed into a folder, each as a part of Debian's file `copyright`.

    :param installed: where the folder will be.
    """
    for info in sorted(folder.glob("*.dist-info")):
        said = message_from_string((info / "METADATA").read_text(encoding="utf-8"))
        name, place = said["Name"], installed / info.name
        authors = said["Author-email"] or said["Author"] or f"the authors of {name}"
        terms = said["License-Expression"] or (said["License"] or "").partition("\n")[0]
        classes = [one for one in said.get_all("Classifier", []) if one.startswith("License ::")]
        terms = terms or ", ".join(one.rpartition(" :: ")[2] for one in classes) or "see there"
        yield (
            f"\nFiles: {place}/* and the modules of {name} {said['Version']}\n"
            f"Copyright: {' '.join(authors.split())}\n"
            f"License: {terms}\n Its text is in {place}.\n"
        )

"""What `make release` makes: a slice of it, of the programs that this checkout has already."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

import hotset
from release import bill, crates, dist
from release.programs import PROGRAMS, CannotBuildError, build
from release.wheel_programs import platform

ROOT = Path(__file__).parents[3]
TARGET = "x86_64-unknown-linux-gnu"
EPOCH = 1_700_000_000


def run(*argv: str, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, cwd=cwd, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs of this checkout, and a text beside them."""
    folder = tmp_path_factory.mktemp("programs")
    for one in PROGRAMS:
        shutil.copy(ROOT / one.crate / "target/release" / one.name, folder / one.name)
    (folder / "LICENCES.txt").write_text("theirs\n")
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built of the source distribution, which so builds."""
    return dist.package(tmp_path_factory.mktemp("dist"), built, EPOCH)


def test_the_wheel_has_all_that_runs_and_says_where(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        modes = {one.filename: one.external_attr >> 16 for one in opened.infolist()}
        said = opened.read(f"hotset-{hotset.__version__}.dist-info/METADATA").decode()
    for one in PROGRAMS:
        assert modes[f"hotset/programs/{one.name}"] & 0o777 == 0o755
    expected = {
        "hotset/__init__.py",
        "hotset/experiments/demo.toml",
        "hotset/programs/LICENCES.txt",
    }
    assert expected <= modes.keys()
    assert not [name for name in modes if "tests" in name.split("/")]
    assert wheel.name.startswith(f"hotset-{hotset.__version__}-py3-none-manylinux_2_")
    metadata = message_from_string(said)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"bench", "report", "console"} <= set(metadata.get_all("Provides-Extra", ()))


def test_the_same_commit_makes_the_same_wheel(wheel: Path, built: Path, tmp_path: Path) -> None:
    """Of the checkout itself this time, on another day."""
    argv = ("uv", "build", "--quiet", "--wheel", "--no-build-isolation", f"--out-dir={tmp_path}")
    run(*argv, str(ROOT), SOURCE_DATE_EPOCH=str(EPOCH), HOTSET_PROGRAMS=str(built))
    (again,) = tmp_path.glob("*.whl")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_what_is_installed_finds_its_programs(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    argv = ("uv", "sync", "--quiet", "--locked", "--no-dev", "--no-install-project")
    run(*argv, UV_PROJECT_ENVIRONMENT=str(environment), VIRTUAL_ENV="")
    run("uv", "pip", "install", "--quiet", "--no-deps", f"--python={environment}", str(wheel))
    code = (
        "from hotset.block import flashdev, programs;"
        "from hotset.core.machines.local import Local;"
        "from hotset.core.paths import shipped_folder;"
        "print(programs.find_engine(), programs.find_boot(), flashdev.program(Local()),"
        " shipped_folder('hotset-tpcc'))"
    )
    found = run(str(environment / "bin/python"), "-c", code, cwd=tmp_path, PATH="/nowhere").split()
    assert [Path(one).name for one in found] == [
        *("hotset-engine", "hotset-boot", "flashdev", "hotset-tpcc")
    ]
    assert all(one.startswith(f"{environment}/") for one in found)
    for one in found[:3]:
        assert run(one, "--help")


def test_the_source_holds_what_git_has_and_nothing_else(wheel: Path, tmp_path: Path) -> None:
    """The cache of `lint-imports`, which hides itself from git, once went with it."""
    source = wheel.with_name(f"hotset-{hotset.__version__}.tar.gz")
    dist.require_tracked(source)
    run("tar", "--extract", f"--file={source}", cwd=tmp_path)
    (folder,) = tmp_path.iterdir()
    (folder / ".a_cache").touch()
    more = tmp_path / "more.tar"
    run("tar", "--create", f"--file={more}", folder.name, cwd=tmp_path)
    with pytest.raises(CannotBuildError, match=r"more\.tar would hold .*: \.a_cache;"):
        dist.require_tracked(more)


def test_a_wheel_that_grew_too_large_is_refused(wheel: Path, tmp_path: Path) -> None:
    dist.require_small(wheel)
    large = tmp_path / "large.whl"
    with large.open("wb") as file:
        file.truncate(dist.WHEEL_MAX_BYTES + 1)
    with pytest.raises(CannotBuildError, match=r"15,000,001 bytes, more than 15,000,000"):
        dist.require_small(large)


def test_the_tag_is_of_the_newest_glibc_that_a_program_needs(built: Path, tmp_path: Path) -> None:
    """One that is linked statically needs none, whatever texts are in it."""
    assert platform([built / "hotset-boot"]) == "manylinux_2_17_x86_64"
    loads = platform([built / "hotset-boot", built / "hotset-tpcc"])
    assert loads > "manylinux_2_17_x86_64"
    other = bytearray((built / "hotset-boot").read_bytes())
    other[18] = 183
    (tmp_path / "other").write_bytes(other)
    assert platform([tmp_path / "other"]) == "manylinux_2_17_aarch64"
    with pytest.raises(ValueError, match=r"\['aarch64', 'x86_64'\]"):
        platform([built / "hotset-boot", tmp_path / "other"])
    with pytest.raises(ValueError, match="programs for nothing"):
        platform([])


def test_another_kind_of_computer_is_refused_where_rust_cannot(tmp_path: Path) -> None:
    target = "s390x-unknown-linux-gnu"
    with pytest.raises(CannotBuildError, match=f"no standard library for {target}"):
        build(ROOT, target, tmp_path / "work", tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_the_bill_names_all_that_is_in_it(built: Path) -> None:
    linked = crates.linked_crates(ROOT, TARGET)
    programs = [built / one.name for one in PROGRAMS]
    made, again = (
        bill.complete(bill.python_bill(ROOT), "1.2", linked, programs, EPOCH) for _ in range(2)
    )
    assert json.dumps(made) == json.dumps(again)
    parts = {one["bom-ref"]: one for one in made["components"]}
    assert len(parts) == len(made["components"])
    names = {one["name"] for one in parts.values()}
    assert {"pydantic", "pyodbc", "serde", "io-uring", *(one.name for one in PROGRAMS)} <= names
    assert not names & {"pytest", "proptest", "hotset", "cache-core"}
    refs = {*parts, made["metadata"]["component"]["bom-ref"]}
    for one in made["dependencies"]:
        assert {one["ref"], *one.get("dependsOn", ())} <= refs
    assert made["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert f"| pkg:cargo/serde | {parts_of(linked, 'serde').version} | MIT OR Apache-2.0 |" in (
        bill.table(made)
    )


def parts_of(linked: list[crates.Crate], name: str) -> crates.Crate:
    (found,) = (one for one in linked if one.name == name)
    return found


def test_the_text_of_every_licence_goes_with_the_programs() -> None:
    linked = crates.linked_crates(ROOT, TARGET)
    without = [one.name for one in linked if not crates.texts(one) or not one.licence]
    assert without == []
    notices = crates.notices(linked)
    assert all(f"\n{one.name} {one.version}: {one.licence}\n" in notices for one in linked)


def test_the_changelog_has_a_part_for_each_version(tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "tag.gpgsign=false")
    run(*git, "init", "--quiet", cwd=tmp_path)
    for subject, tag in (("Begin", ""), ("Ship it", "v0.1"), ("Mend it", "")):
        run(*git, "commit", "--quiet", "--allow-empty", f"--message={subject}", cwd=tmp_path)
        if tag:
            run(*git, "tag", tag, cwd=tmp_path)
    lines = dist.changelog(tmp_path, "0.2").splitlines()
    told = [line.partition(" (")[0] for line in lines if line]
    assert told == ["# Changes", "## 0.2", "- Mend it", "## 0.1", "- Ship it", "- Begin"]


def test_what_is_not_committed_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("git", "init", "--quiet", cwd=tmp_path)
    (tmp_path / "half-done").touch()
    monkeypatch.setattr(dist, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["dist.py", f"--target={TARGET}"])
    assert dist.main() == 3
    assert "not committed: half-done." in capsys.readouterr().err

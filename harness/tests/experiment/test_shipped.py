"""Experiments that come with hotset are run by their names, wherever hotset was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotset.core.extras import Extra
from hotset.experiment.commands import experiment
from hotset.experiment.file import shipped
from tests.cli_server import CommandLine


def test_a_name_is_the_file_that_comes_with_hotset(hotset: CommandLine) -> None:
    """From a package there was no `experiments/demo.toml`, and every block of the page failed."""
    listed = hotset("experiment", "list", "--format", "csv")
    names = [line.split(",")[0] for line in listed.out.splitlines()[1:]]
    assert names == [one.name for one in shipped.known()]
    assert {"curve", "demo", "shop"} <= set(names)
    for name in names:
        request = experiment.Plan(file=name)
        assert Path(request.file).is_file()
        assert shipped.name_of(request.file) == name


def test_a_file_of_ones_own_is_named_by_its_path(tmp_path: Path) -> None:
    own = tmp_path / "demo.toml"
    own.write_text("")
    for path in (str(own), "no/such.toml", "mine.toml"):
        assert experiment.Plan(file=path).file == shipped.name_of(path) == path


def test_a_name_that_no_experiment_has_is_refused_with_where_to_see_them(
    hotset: CommandLine,
) -> None:
    done = hotset("experiment", "plan", "demos")
    assert done.code == 2
    assert "demos: no such experiment file; to see those that come with hotset" in done.err
    assert "`hotset experiment list`" in done.err


@pytest.mark.parametrize(
    ("words", "option"), [(("whatif", "simulate"), "--scheduler"), (("disk", "arrays"), "--search")]
)
def test_what_no_package_has_is_not_in_its_commands(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], option: str
) -> None:
    """It was refused with `uv tool install`, where neither uv is nor what it would install."""
    from hotset.cli import generate
    from hotset.operations import table

    known = [one.name for one in generate._parameters(table.find(" ".join(words)))]
    monkeypatch.setattr("hotset.core.extras.is_packaged", lambda: True)
    monkeypatch.setattr("hotset.core.extras._has", lambda extra: extra in (Extra.BENCH,))
    packaged = [one.name for one in generate._parameters(table.find(" ".join(words)))]
    name = option.removeprefix("--")
    assert name in known
    assert name not in packaged

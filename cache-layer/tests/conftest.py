"""Every test has folders of its own: nothing of the user's cache, archive or lab is touched."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folders(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """XDG folders below the test's own; returns their root.

    Tests of the lab share the user's cache: its image takes a minute to build.
    """
    root = tmp_path / "xdg"
    shared = {"XDG_CACHE_HOME"} if request.node.get_closest_marker("lab") else set()
    for variable in {"XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"} - shared:
        monkeypatch.setenv(variable, str(root / variable))
    return root

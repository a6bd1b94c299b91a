"""Every test has folders of its own: nothing of the user's cache, archive or lab is touched."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """XDG folders below the test's own; returns their root."""
    root = tmp_path / "xdg"
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(root / variable))
    return root

from __future__ import annotations

from pathlib import Path

import pytest

from hotset.core.paths import write_whole


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "hotset.prom"
    file.write_text("old")
    write_whole(file, "new\n")
    assert file.read_text() == "new\n"
    assert file.stat().st_mode & 0o777 == 0o644
    write_whole(file, "secret\n", 0o600)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir() if one.name != "xdg"] == ["hotset.prom"]
    with pytest.raises(OSError, match="No such"):
        write_whole(tmp_path / "none" / "hotset.prom", "new\n")


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "half of it, \udcff")
    assert file.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir() if one.name != "xdg"] == ["kept"]

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hotset.core.paths import read_commit, write_whole


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


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root to make a device")
    for minor, name in ((3, "null"), (7, "full")):
        device = tmp_path / name
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        device.chmod(0o666)
    before = [(tmp_path / name).stat() for name in ("null", "full")]
    write_whole(tmp_path / "null", "gone\n")
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "full", "no room\n")
    assert [(tmp_path / name).stat() for name in ("null", "full")] == before
    assert sorted(one.name for one in tmp_path.iterdir() if one.name != "xdg") == ["full", "null"]


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o640)
    argv = ["timeout", "60", "cat", str(pipe)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as reader:
        write_whole(pipe, "through\n")
        assert reader.communicate()[0] == "through\n"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert pipe.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    file, link, chain = folder / "file", tmp_path / "link", tmp_path / "chain"
    link.symlink_to("folder/file")
    chain.symlink_to(link)
    for text in ("made\n", "replaced\n"):
        write_whole(chain, text)
        assert file.read_text() == text
        assert chain.is_symlink()
        assert link.is_symlink()
        assert not file.is_symlink()
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(OSError, match="levels of symbolic links"):
        write_whole(chain, "nowhere\n")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_name_is_written_where_it_stands(tmp_path: Path, name: str) -> None:
    """A file too, into which more is written before and after: it is not replaced nor cut off."""
    (named := tmp_path / "name").symlink_to(name)
    script = (
        "import sys; from pathlib import Path; from hotset.core.paths import write_whole;"
        " write_whole(Path(sys.argv[1]), 'text\\n')"
    )
    line = 'echo before; "$1" -c "$2" "$3"; echo after'
    argv = ["sh", "-c", line, "sh", sys.executable, script, str(named)]
    for piped in (True, False):
        with (tmp_path / "out").open("w") as out:
            done = subprocess.run(
                argv, stdout=subprocess.PIPE if piped else out, check=True, text=True, timeout=60
            )
        said = done.stdout if piped else (tmp_path / "out").read_text()
        assert said == "before\ntext\nafter\n"
        assert named.is_symlink()


def test_a_file_that_cannot_be_replaced_is_written_to(tmp_path: Path) -> None:
    """As one file that a container was given: nothing can be renamed over a mount."""
    if os.geteuid():
        pytest.skip("needs root to mount")
    (given := tmp_path / "given").write_text("older and longer\n")
    (other := tmp_path / "other").write_text("")
    script = (
        "import sys; from pathlib import Path; from hotset.core.paths import write_whole;"
        " write_whole(Path(sys.argv[1]), 'text\\n')"
    )
    line = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$2"'
    enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", line, "sh"]
    argv = [*enter, str(given), str(other), sys.executable, script]
    subprocess.run(argv, check=True, timeout=60)
    assert given.read_text() == "text\n"
    assert other.read_text() == ""


def test_a_checkouts_commit_is_the_one_that_git_says() -> None:
    said = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode:
        pytest.skip("no checkout")
    assert read_commit() == said.stdout.strip()

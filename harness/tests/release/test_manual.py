"""Man pages and completion: made of the parser, rendered by man and mandoc, tried in shells."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest
import typer.main

from hotset import cli
from pages import manual, reference
from tests.pseudo_terminal import Terminal

ROOT = Path(__file__).parents[3]
COMMANDS = dict(reference.commands(typer.main.get_command(cli.create()), ("hotset",)))
PAGES = {words: f"man/man1/{'-'.join(words)}.1" for words in COMMANDS}
LEAVES = {words: one for words, one in COMMANDS.items() if not reference.commands_below(one)}
GROUPS = {words: one for words, one in COMMANDS.items() if reference.commands_below(one)}


def need(program: str) -> None:
    """Skip where a shell or a renderer is missing."""
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here: make setup-test installs it")


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make manual` leaves, made as it makes it."""
    folder = tmp_path_factory.mktemp("manual") / "share"
    argv = [sys.executable, "-m", "pages.manual", str(folder)]
    subprocess.run(argv, check=True, cwd=ROOT / "scripts")
    return folder


def options_of(words: tuple[str, ...]) -> set[str]:
    shown = reference.parameters(COMMANDS[words])
    return {name for one in shown for name in (*one.opts, *one.secondary_opts) if name[0] == "-"}


def said(file: Path) -> str:
    """A page as a reader sees it, its lines joined."""
    environment = {**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}
    command = ["man", "--no-hyphenation", "--no-justification", "-l", str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return " ".join(re.sub(".\b", "", done.stdout).split())


# Man pages


def test_every_command_has_its_page_and_no_page_has_no_command(share: Path) -> None:
    made = {str(one.relative_to(share)) for one in share.glob("man/**/*.1")}
    assert made == set(PAGES.values())


def test_a_page_says_every_option_and_all_of_its_help(share: Path) -> None:
    """As man shows it: what a macro has swallowed, or a minus that became a hyphen, is missed."""
    need("man")
    for words in [("hotset",), ("hotset", "tier", "create"), ("hotset", "report", "run")]:
        text = said(share / PAGES[words])
        for one in reference.parameters(COMMANDS[words]):
            for name in one.opts if reference.is_option(one) else [reference.metavar(one)]:
                assert name in text
            assert reference.one_line(one.help).replace("`", "") in text
    whole = said(share / PAGES["hotset",])
    for name, meaning in reference.ENVIRONMENT["The command line"].items():
        assert f"{name} {meaning.replace('`', '')}" in whole
    for code, meaning in reference.EXIT_CODES.items():
        assert f"{code} {meaning.replace('`', '')}" in whole
    assert "~/.local/share/hotset/runs/ runs: " in whole


def test_man_and_mandoc_have_nothing_against_any_page(share: Path) -> None:
    need("mandoc")
    files = [str(share / name) for name in PAGES.values()]
    lint = ["mandoc", "-T", "lint", "-W", "warning", *files]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
    need("groff")
    groff = ["groff", "-man", "-ww", "-z", "-T", "utf8", *files]
    done = subprocess.run(groff, capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (".TH is no macro", ".TH is no macro"),
        ("'quoted' text", "'quoted' text"),
        (r"C:\new and \fB", r"C:\new and \fB"),
        ("`--yes` or ``", "--yes or"),
        ("a `lone backtick", "a `lone backtick"),
        ("≥ 5 % – Größe … ~/.config^", "≥ 5 % – Größe … ~/.config^"),
    ],
)
def test_text_is_shown_as_it_is(tmp_path: Path, text: str, shown: str) -> None:
    need("man")
    file = tmp_path / "page.1"
    file.write_text(f'.TH "PAGE" "1" "2026-01-01"\n.SH "TEXT"\n{manual.roff(text)}\n')
    assert f"TEXT {shown}" in said(file)


def test_two_builds_are_equal(share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = manual.files()
    assert {name: (share / name).read_text() for name in again} == again
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert '"1970-01-02"' in manual.files()[Path(PAGES["hotset",])]


# Completion

WITH_HOTSET = {**os.environ, "PATH": f"{ROOT}:{os.environ['PATH']}"}


def asked_of_bash(share: Path, lines: Collection[str]) -> Iterator[set[str]]:
    """What bash would offer at the end of each line: words are split as readline splits them."""
    script = share / "bash-completion/completions/hotset"
    ask = """
source "$1"; shift
for line; do
    read -ra COMP_WORDS <<<"${line//=/ = }"
    if [[ $line = *' ' ]]; then COMP_WORDS+=(''); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _hotset_completion hotset
    echo "${COMPREPLY[*]}"
done
"""
    command = ["bash", "--norc", "-uc", ask, "ask", str(script), *lines]
    done = subprocess.run(command, env=WITH_HOTSET, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    yield from (set(line.split()) for line in done.stdout.splitlines())


def asked_of_fish(share: Path, lines: Collection[str]) -> Iterator[set[str]]:
    need("fish")
    script = share / "fish/vendor_completions.d/hotset.fish"
    ask = "source $argv[1]; for line in $argv[2..]; complete -C $line; echo END; end"
    command = ["fish", "--no-config", "-c", ask, str(script), *lines]
    done = subprocess.run(command, env=WITH_HOTSET, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for part in done.stdout.split("END\n")[:-1]:
        yield {line.partition("\t")[0].rpartition("=")[2] for line in part.splitlines()}


ZSH_SETUP = """
PS1='READY> '; fpath=({folder} $fpath); autoload -Uz compinit; compinit -D -u
compadd () {{
    if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
    local -a hits; builtin compadd -A hits "$@"; builtin compadd "$@"
    print -rl -- "$BUFFER"$'\t'${{^hits}} >>{hits}
}}
finished () {{ print -r -- "$BUFFER"$'\tEND' >>{hits}; comppostfuncs=(finished) }}
comppostfuncs=(finished)
bindkey '^I' list-choices; LINES=500 LISTMAX=10000; setopt no_beep; unset zle_bracketed_paste
echo set-up-is-done | tr - .
"""


def asked_of_zsh(share: Path, lines: Collection[str]) -> Iterator[set[str]]:
    """By pressing Tab in a terminal: zsh completes nowhere else."""
    need("zsh")
    hits = share / "hits"
    hits.write_text("")
    setup = share / "setup.zsh"
    setup.write_text(ZSH_SETUP.format(folder=share / "zsh/site-functions", hits=hits))
    zsh = shutil.which("zsh")
    assert zsh is not None
    terminal = Terminal([zsh, "-f", "-i"], {"PATH": WITH_HOTSET["PATH"], "TERM": "dumb"}, 200)
    terminal.press(f"source {setup}\n")
    terminal.until_written("set.up.is.done")
    for at, line in enumerate(lines):
        terminal.press(f"{line}\t")
        terminal.until(lambda _, end=f"{line}\tEND\n": end in hits.read_text(), 20)
        terminal.press(f"\x15echo next-is-{at} | tr - .\n")  # the list has been drawn by then
        terminal.until_written(f"next.is.{at}", 20)
        told = (one.rpartition("\t") for one in hits.read_text().splitlines())
        yield {hit.rstrip("=") for of, _, hit in told if of == line} - {"", "END"}
    terminal.press("\x15exit\n")
    terminal.ended()


Asked = Callable[[Path, Collection[str]], Iterator[set[str]]]
SHELLS = pytest.mark.parametrize(
    "asked", [asked_of_bash, asked_of_fish, asked_of_zsh], ids=["bash", "fish", "zsh"]
)


@SHELLS
def test_a_shell_is_told_what_the_parser_takes(share: Path, asked: Asked) -> None:
    """Commands of a group, options of a command, and choices."""
    tier = ("hotset", "tier")
    flush = {name for name in options_of((*tier, "flush")) if name[:2] == "--"} | {"--help"}
    expected = {
        "hotset tier ": set(reference.commands_below(COMMANDS[tier])),
        "hotset tier flush --": flush,
        "hotset tier create shop --kind ": {"dm-cache", "bcache", "userspace"},
        "hotset report hit-ratio -f ": {"table", "json", "csv"},
    }
    assert dict(zip(expected, asked(share, expected), strict=True)) == expected

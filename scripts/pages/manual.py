"""Man pages and shell completion: `make manual`.

The pages are made of what `docs/reference/cli.md` is made of: the command line's own parser and the
tables of `reference`; completion is typer's own. (click-man finds no option of a typer command,
whose click is a copy inside typer, and marks nothing that roff would take for its own.) They are
laid out below FOLDER as a package puts them below `/usr/share`, and are not kept in the repository.
There is one page for each command, such as hotset-tier-create(1).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer.main
from typer._completion_shared import get_completion_script

from hotset import __version__
from hotset.cli import COMPLETION, create

from . import reference

ROOT = Path(__file__).resolve().parents[2]
_COMPLETIONS = {
    "bash": "bash-completion/completions/hotset",
    "zsh": "zsh/site-functions/_hotset",
    "fish": "fish/vendor_completions.d/hotset.fish",
}
Words = tuple[str, ...]
"""A command, such as ``("hotset", "tier", "create")``."""


def files() -> dict[Path, str]:
    """Every file, by its path below ``/usr/share``, with its text."""
    root = typer.main.get_command(create())
    every = dict(reference.commands(root, ("hotset",)))
    pages = {
        Path("man/man1") / f"{'-'.join(words)}.1": page(words, command)
        for words, command in every.items()
    }
    return pages | {Path(path): completion(shell) for shell, path in _COMPLETIONS.items()}


def completion(shell: str) -> str:
    """Return the script by which a shell asks hotset itself for words."""
    text = get_completion_script(prog_name="hotset", complete_var=COMPLETION, shell=shell)
    # zsh loads it at the first press of Tab, which would only define what the next one calls.
    return f'{text}\n_hotset_completion "$@"\n' if shell == "zsh" else f"{text}\n"


# A page, in the macros of man(7)


def page(words: Words, command: Any) -> str:  # noqa: ANN401 - typer's parser
    """The man page of a command."""
    name, shown = "-".join(words), reference.parameters(command)
    below = reference.commands_below(command)
    help_text = reference.paragraphs(command.help).split("\n\n")
    lines = [
        '.\\" Generated: make manual.',
        f'.TH "{name.upper()}" "1" "{_date()}" "hotset {__version__}" "hotset\'s manual"',
        *_section("Name", [rf"{_hyphens(name)} \- {roff(_summary(help_text[0]))}"]),
        *_section("Synopsis", list(_synopsis(words, command))),
        *_section("Description", _between(".PP", [[roff(paragraph)] for paragraph in help_text])),
        *_section("Commands", _terms(_commands(words, below))),
        *_section("Arguments", _terms(_explain(shown, options=False))),
        *_section("Options", _terms(_explain(shown, options=True))),
    ]
    if len(words) == 1:
        environment = reference.ENVIRONMENT["The command line"]
        codes = {str(code): text for code, text in reference.EXIT_CODES.items()}
        lines += _section("Exit status", _terms(codes))
        lines += _section("Environment", _terms(environment))
        lines += _section("Files", _terms(_keep()))
    return "\n".join([*lines, *_section("See also", _related_pages(words, below))]) + "\n"


def _date() -> str:
    """Return the date of the sources, which makes builds equal; nothing where it is not known."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is None:
        command = ["git", "log", "-1", "--format=%ct"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds = done.stdout.strip() if done.returncode == 0 else ""
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d}" if seconds else ""


def _summary(text: str) -> str:
    """The first sentence, as lists of pages show it."""
    return re.split(r"(?<=[a-z`)])[.:](?:\s|$)", text, maxsplit=1)[0]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f'.SH "{title.upper()}"', *lines] if lines else []


def _between(mark: str, parts: Sequence[Sequence[str]]) -> list[str]:
    joined: list[str] = []
    for part in parts:
        joined += [mark, *part] if joined else [*part]
    return joined


def _synopsis(words: Words, command: Any) -> Iterator[str]:  # noqa: ANN401 - typer's parser
    own = rf"\fB{_hyphens(' '.join(words))}\fR"
    below = reference.commands_below(command)
    if below:
        yield rf"{own} \fICOMMAND\fR ..."
    if not below or command.invoke_without_command:
        if below:
            yield ".br"
        used = [roff(word) for word in reference.usage(reference.parameters(command))]
        yield " ".join([own, *used])


def _commands(words: Words, below: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"`{'-'.join((*words, name))}`(1)": reference.paragraphs(command.help).split("\n\n")[0]
        for name, command in below.items()
    }


def _explain(shown: Sequence[Any], *, options: bool) -> dict[str, str]:
    meanings: dict[str, str] = {}
    for parameter in shown:
        if reference.is_option(parameter) != options:
            continue
        value, default = reference.metavar(parameter), reference.default_of(parameter)
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        notes = ["Required."] if parameter.required and options else []
        notes += [f"Default: {default}."] if default else []
        notes += [f"Environment: `{parameter.envvar}`."] if parameter.envvar else []
        term = f"{names} {value}".rstrip() if options else value
        meanings[term] = " ".join([reference.one_line(parameter.help), *notes])
    return meanings


def _keep() -> dict[str, str]:
    """Where hotset keeps things, from the page that says so.

    :raises ValueError: the page has no such table any more.
    """
    page_text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    _, _, table = page_text.partition("| What | Where |\n|---|---|\n")
    rows = re.findall(r"^\| (.*) \| (.*) \|$", table.partition("\n\n")[0], re.MULTILINE)
    if not rows:
        raise ValueError("docs/troubleshooting.md has no table of what hotset keeps where")
    return {where: what for what, where in rows}


def _terms(explained: Mapping[str, str]) -> list[str]:
    return [line for term, text in explained.items() for line in (".TP", _term(term), roff(text))]


def _term(text: str) -> str:
    """A term without backticks is bold as a whole."""
    return roff(text if "`" in text else f"`{text}`")


def _related_pages(words: Words, below: Mapping[str, Any]) -> list[str]:
    above = ["-".join(words[:-1])] if len(words) > 1 else []
    names = sorted({"hotset", *above, *("-".join((*words, name)) for name in below)})
    names = [name for name in names if name != "-".join(words)]
    return [", ".join(rf"\fB{_hyphens(name)}\fR(1)" for name in names)]


def roff(text: str) -> str:
    r"""Text of a page: text between backticks is bold, and nothing is a macro.

    >>> roff("`--yes` means: don't ask, é"), roff(".TH"), roff(r"a\b")
    ('\\fB\\-\\-yes\\fR means: don\\(aqt ask, \\[u00E9]', '\\&.TH', 'a\\eb')
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one backtick has no partner
        parts = [text]
    plain = "".join(
        rf"\fB{_hyphens(_characters(part))}\fR" if at % 2 else _characters(part)
        for at, part in enumerate(parts)
    )
    return rf"\&{plain}" if plain.startswith((".", r"\(aq")) else plain


def _hyphens(text: str) -> str:
    """Escape hyphens to minus signs: a hyphen could not be copied to a command line."""
    return text.replace("-", r"\-")


def _characters(text: str) -> str:
    special = {"\\": r"\e", "'": r"\(aq", "^": r"\(ha", "~": r"\(ti", "`": r"\(ga"}
    return "".join(
        special.get(char) or (char if char.isascii() else f"\\[u{ord(char):04X}]") for char in text
    )


def main() -> None:
    """Write them below the folder that is named."""
    try:
        (folder,) = map(Path, sys.argv[1:])
    except ValueError:
        sys.exit("usage: python -m pages.manual FOLDER (in a package: /usr/share)")
    for path, text in files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

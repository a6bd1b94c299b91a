"""Command lines of ours in a text, and whether the command line has them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer.main

from hotset import cli

TREE = typer.main.get_command(cli.create())


def commands(text: str) -> Iterator[str]:
    """Command lines of ours in code blocks and between backticks."""
    for block in re.findall(r"^```.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r";|&&|\|(?!\w)|\$\(", re.sub(r"(^|\s)#\s.*", "", line)):
                if found := re.match(r"\s*(?:uv run |\./)?(hotset\s.*)", part):
                    yield found[1]
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`(hotset\s[^`]+)`", outside):
        yield " ".join(code.split())


def exists(text: str) -> bool:
    """Whether the command line has these words, and the command these options."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)[1:]
    except ValueError:  # an apostrophe
        words = text.split()[1:]
    command: Any = TREE
    for word in words:
        inner = getattr(command, "commands", None)
        if not inner or not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        if word in inner and not inner[word].hidden:
            command = inner[word]
        elif command.name == "report":  # `report last` is `report run last`
            break
        else:
            return False
    if command.name == "report":
        command = command.commands["run"]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return options <= known | {"--help"}

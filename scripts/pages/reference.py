"""Writes docs/reference, and what the clients in scripts/ are generated of: `make docs`.

Commands and options come from the command line's own parser, experiment keys from the models that
check the file. What neither of them knows (what a variable or an exit code means) is told here, and
`harness/tests/project/test_docs.py` fails when something is missing or a file is stale.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer.main
from pydantic import BaseModel

from hotset.api import clients
from hotset.cli import create
from hotset.core.units import SIZE_PATTERN, Bytes
from hotset.experiment.file.disk_spec import DiskSpec
from hotset.experiment.file.spec import Spec

from . import rooms

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/reference"

EXIT_CODES = {
    0: "It worked.",
    1: "A question was answered with no. Nothing was done.",
    2: "Usage: an option, an experiment file or a name is wrong, something in the way is not"
    " hotset's own, or a question had no answer. Nothing was done.",
    3: "This computer or the server lacks something, or something else is using it. The message"
    " says what to do.",
    4: "It failed. What was measured until then is kept.",
    5: "A threshold was missed: the probe's hit ratio, a calibration, answers that differ. Of"
    " `tier health`: something is to be done.",
    130: "Interrupted by Ctrl-C or SIGTERM. What a command had set up for itself it removes; what"
    " stays it names.",
}

ENVIRONMENT: Mapping[str, Mapping[str, str]] = {
    "The command line": {
        "HOTSET_MACHINE": "Default of `--machine`: where the accelerated disks are.",
        "HOTSET_ARCHIVE_LIMIT": "The size from which on a measurement ends with a note that the"
        " archive of runs is large; 10GB by default.",
        "HOTSET_SSH_KEY": "A private key for `--machine ssh://…`, beside the agent's and those in"
        " `~/.ssh`.",
        "HOTSET_KNOWN_HOSTS": "The file of known host keys, in place of `~/.ssh/known_hosts`.",
        "HOTSET_DSN": "Default of `--dsn`: where the database is, without a password.",
        "HOTSET_PASSWORD": "The database user's password.",
        "PGPORT": "PostgreSQL's port where the DSN names none, as all of libpq's variables hold.",
        "PGSERVICE": "libpq's service where the DSN names none.",
        "FREETDSCONF": "Not read: hotset gives FreeTDS settings of its own for each server.",
        "PGBENCH": "The `pgbench` of `sql run`, in place of the one beside the newest server's"
        " programs or on the PATH.",
        "HAMMERDB_HOME": "The unpacked HammerDB release for `--driver hammerdb`.",
        "HOTSET_CONSOLE_PASSWORD_FILE": "A file whose first line becomes the console's password,"
        " when the console starts for the first time without a terminal.",
        "HOTSET_DEBIAN_MIRROR": "The Debian mirror that the lab's image is built from.",
        "HOTSET_FLASHDEV": "The lab's program, `flashdev`, in place of this checkout's or the one"
        " on the PATH; `hotset-engine` and `hotset-boot` are looked for beside it first, those for"
        " other architectures in folders of their names (`aarch64`).",
        "HOTSET_TPCC_DRIVER": "The `hotset-tpcc` program, likewise.",
        "HOTSET_CONTAINER": "Set in the container image, which refuses what needs the host.",
        "HOTSET_DEBUG": "If set, an unexpected error prints its traceback.",
        "NO_COLOR": "If set, no colours on the terminal.",
        "XDG_CACHE_HOME": "Base of the cache folder (`~/.cache`).",
        "XDG_DATA_HOME": "Base of the data folder (`~/.local/share`).",
        "XDG_STATE_HOME": "Base of the state folder (`~/.local/state`).",
    },
    "The PowerShell module": {
        "HOTSET_URI": "Where the console listens, such as `https://db1:8480`; `http://` only for"
        " this computer.",
        "HOTSET_TOKEN_FILE": "The file with the API token (`~/.config/hotset/token`).",
        "HOTSET_TOKEN": "The API token itself.",
        "XDG_CONFIG_HOME": "Base of the configuration folder (`~/.config`).",
    },
    "containers/compose.yaml": {
        "HOTSET_VERSION": "The image's tag.",
        "HOTSET_PORT": "The console's port on this computer's loopback (8480).",
        "HOTSET_GRAFANA_PORT": "Grafana's (3000).",
        "HOTSET_PROMETHEUS_PORT": "Prometheus' (9090).",
    },
    "scripts/sqlserver.sh and compose.yaml": {
        "ACCEPT_EULA": "`Y`, if you accept Microsoft's licence terms.",
        "MSSQL_SA_PASSWORD": "The password of `sa`.",
        "MSSQL_SA_PASSWORD_FILE": "A file that holds it (`scripts/sqlserver.sh` only).",
        "MSSQL_PID": "The edition: `Express` (free, the default), `Developer`, or a product key.",
        "MSSQL_TAG": "The image's tag (`2022-latest`).",
        "MSSQL_PORT": "The port on this computer's loopback (1433).",
        "HOTSET_DATA": "A folder on the accelerated disk, for data files.",
        "HOTSET_VOLUME": "A folder on the flash volume, for logs and tempdb.",
        "HOTSET_DATABASE": "The database to create (`tpcc`).",
        "HOTSET_LOG_SIZE": "Size of its log (`1GiB`).",
        "HOTSET_SQLSERVER_MEMORY": "Memory cap (75 % of what the server sees).",
        "HOTSET_WAIT_S": "Seconds to wait for the server to start (180).",
    },
    "The packages": {
        "HOTSET_REMOVE": "`active`: remove the package while disks are up; they go on without it.",
    },
    "make manual": {
        "SOURCE_DATE_EPOCH": "The date of the man pages, in seconds since 1970; without it, that of"
        " the last commit.",
    },
    "When a wheel is built": {
        "HOTSET_MODULE": "The folder of the PowerShell module that goes"
        " into the wheel, with all that is generated; `make release` sets it.",
        "HOTSET_PROGRAMS": "The folder of the Rust programs that go into the wheel; `make release`"
        " sets it. Without it the wheel has none, and fits every kind of computer.",
        "CARGO_HOME": "Cargo's folder, whose place must not get into the programs.",
    },
    "Between hotset's own processes, and for its tests": {
        "HOTSET_PROGRESS": "`json`: messages and progress are JSON, one object a line.",
        "COMP_WORDS": "From a shell (bash): the words that it wants completed.",
        "_TYPER_COMPLETE_ARGS": "The same, from zsh and fish.",
        "HOTSET_JOB": "The folder of the job that a process belongs to.",
        "HOTSET_HAMMERDB_PASSWORD": "The password, from hotset to HammerDB.",
        "HOTSET_SQLSERVER_DSN": "A server, with a database for nothing else, that the tests of the"
        " T-SQL run against.",
        "HOTSET_PWSH": "PowerShell for the tests of its module; by default that of the PATH.",
        "HOTSET_UPDATE_GOLDEN": "If set, tests rewrite their golden texts.",
        "HOTSET_TEST_STARTED": "A file that a test's child process leaves when it has started.",
    },
}

_GENERATED = "<!-- Generated: run `make docs`. -->\n"
_VALUES = {int: "INTEGER", float: "NUMBER", Path: "PATH"}
_NAMES = {
    "boolean": "true or false",
    "integer": "integer",
    "number": "number",
    "object": "table",
    "string": "text",
}
_SIZE = {"type": "string", "pattern": SIZE_PATTERN}


def files() -> dict[Path, str]:
    """Every file of the reference, with the text it has to have."""
    return {
        FOLDER / "cli.md": cli(),
        FOLDER / "rooms.md": _GENERATED + rooms.page(),
        FOLDER / "experiment.md": experiment(),
        FOLDER / "experiment.schema.json": json.dumps(schema(), indent=2, ensure_ascii=False)
        + "\n",
        **clients.files(),
    }


# The command line


def cli() -> str:
    root = typer.main.get_command(create())
    every = list(commands(root, ("hotset",)))
    leaves = [(words, command) for words, command in every if not commands_below(command)]
    lines = [
        _GENERATED,
        "# Command line",
        "",
        f"`hotset` has {len(leaves)} commands. Results go to standard output, messages and progress"
        " to standard error. On a terminal progress is a bar; otherwise it is a line now and then."
        " `hotset COMMAND --help` prints the same text, and so does `man hotset-COMMAND` where a"
        " package brought the manual. `--install-completion` sets up the shell's completion, which"
        " a package has for bash, zsh and fish.",
        "",
        "## Exit codes",
        "",
        *_table(("Code", "Meaning"), [(str(code), text) for code, text in EXIT_CODES.items()]),
        "",
        "## Environment variables",
    ]
    for user, variables in ENVIRONMENT.items():
        rows = [(f"`{name}`", text) for name, text in variables.items()]
        lines += ["", f"### {user}", "", *_table(("Variable", "Meaning"), rows)]
    for words, command in every:
        lines += ["", *_command(words, command)]
    return "\n".join(lines) + "\n"


def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401 - typer's parser
    """A command and all below it that are not hidden, in the parser's order."""
    yield words, command
    for name, inner in commands_below(command).items():
        yield from commands(inner, (*words, name))


def parameters(command: Any) -> list[Any]:  # noqa: ANN401 - typer's parser
    """Arguments and options that are not hidden; `--help` is every command's."""
    return [param for param in command.params if not getattr(param, "hidden", False)]


def commands_below(command: Any) -> Mapping[str, Any]:  # noqa: ANN401 - typer's parser
    """The commands of a group that are not hidden, by their last word; of a command: none."""
    below = getattr(command, "commands", None) or {}
    return {name: command for name, command in below.items() if not command.hidden}


def _command(words: tuple[str, ...], command: Any) -> list[str]:  # noqa: ANN401 - typer's parser
    inner = commands_below(command)
    lines = [f"## {' '.join(words)}", "", paragraphs(command.help)]
    if inner:
        own = [f"[`{name}`](#{'-'.join((*words, name))})" for name in inner]
        lines += ["", "Commands: " + ", ".join(own) + "."]
    shown = parameters(command)
    if not inner or command.invoke_without_command:
        lines += ["", "```", " ".join([*words, *usage(shown)]), "```"]
    rows = [_row(parameter) for parameter in shown]
    if rows:
        lines += ["", *_table(("Argument or option", "Default", "Meaning"), rows)]
    return lines


def usage(shown: list[Any]) -> Iterator[str]:
    """Yield what follows the words of a command in its synopsis."""
    if any(is_option(parameter) for parameter in shown):
        yield "[OPTIONS]"
    for parameter in shown:
        if not is_option(parameter):
            yield metavar(parameter)


def _row(parameter: Any) -> tuple[str, str, str]:  # noqa: ANN401 - typer's parser
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = metavar(parameter)
    name = (f"{names} `{value}`" if value else names) if is_option(parameter) else f"`{value}`"
    default = "required" if parameter.required else default_of(parameter)
    meaning = one_line(parameter.help)
    if parameter.envvar:
        meaning += f" Environment: `{parameter.envvar}`."
    return name, default, meaning


def is_option(parameter: Any) -> bool:  # noqa: ANN401 - typer's parser
    """True if a parameter has a name on the command line; else it is an argument."""
    return bool(parameter.opts[0].startswith("-"))


def metavar(parameter: Any) -> str:  # noqa: ANN401 - typer's parser
    """Return the placeholder of its value: `PATH`, `a|b`; nothing for an option that takes none."""
    if parameter.metavar:
        bare = str(parameter.metavar) + "..." * (
            not is_option(parameter) and parameter.type_descriptor.is_list
        )
        return bare if is_option(parameter) or parameter.required else f"[{bare}]"
    kind = parameter.type_descriptor.annotation
    if not is_option(parameter):
        name = str(parameter.name).upper() + "…" * parameter.type_descriptor.is_list
        return name if parameter.required else f"[{name}]"
    if kind is bool:
        return ""
    if get_origin(kind) is Literal:
        return "|".join(str(value) for value in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(value.value) for value in kind)
    return _VALUES.get(kind, "TEXT")


def default_of(parameter: Any) -> str:  # noqa: ANN401 - typer's parser
    """Its default between backticks; nothing where there is none worth saying."""
    value = parameter.default
    if value is None or value in ([], "") or (value is False and not parameter.secondary_opts):
        return ""
    if isinstance(value, bool):
        return f"`{(parameter.opts if value else parameter.secondary_opts)[0]}`"
    return f"`{value.value if isinstance(value, Enum) else value}`"


# The experiment file


def experiment() -> str:
    whole = schema()
    top = _of_database(whole)
    lines = [
        _GENERATED,
        "# Experiment file",
        "",
        "An experiment is one TOML file. An unknown key is an error that names it. Any value can be"
        " replaced on the command line: `--set tpcc.users=32`. Put this line at the top of your own"
        " file, with the path to it, and an editor that knows TOML schemas (Even Better TOML,"
        " taplo) completes and checks its keys:",
        "",
        "```toml",
        "#:schema docs/reference/experiment.schema.json",
        "```",
        "",
        'A *size* is a number of bytes, or text such as `"64KiB"`, `"1.5GiB"` (units of 1024) or'
        ' `"595GB"` (units of 1000). What keys mean together (whether the sizes fit, which cache'
        " has which policy) is checked when the file is read; `hotset experiment plan FILE` does so"
        " and runs nothing.",
        "",
        "## Top level",
        "",
        *_rows(top, top, ""),
    ]
    for name, inner in _tables(top):
        title = f"## [{name}]" + ("" if name in top["required"] else " (optional)")
        lines += ["", title, "", inner["description"], "", *_rows(top, inner, f"{name}.")]
    disks = _of_disks(whole)
    lines += [
        "",
        "## Experiments on modelled disks",
        "",
        "An experiment with one of the following tables has no database, and of the keys above"
        " `name` and `title` alone.",
    ]
    for name, inner in _tables(disks):
        lines += ["", f"## [{name}]", "", inner["description"], ""]
        lines += _rows(disks, inner, f"{name}.")
    return "\n".join(lines) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of an experiment file, as editors want it: without null, which TOML has not,
    and with sizes written as a user would."""
    database, disks = _model_schema(Spec), _model_schema(DiskSpec)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hotset experiment",
        "if": {"anyOf": [{"required": [name]} for name, _ in _tables(disks)]},
        "then": {name: value for name, value in disks.items() if name != "$defs"},
        "else": {name: value for name, value in database.items() if name != "$defs"},
        "$defs": database["$defs"] | disks["$defs"],
    }


def _of_database(whole: Mapping[str, Any]) -> dict[str, Any]:
    return {**whole["else"], "$defs": whole["$defs"]}


def _of_disks(whole: Mapping[str, Any]) -> dict[str, Any]:
    return {**whole["then"], "$defs": whole["$defs"]}


def _model_schema(top: type[BaseModel]) -> dict[str, Any]:
    made = top.model_json_schema()
    models: list[type[BaseModel]] = [top, *_inner_models(top)]
    for model in models:
        keys = (made if model is top else made["$defs"][model.__name__])["properties"]
        for name, field in model.model_fields.items():
            if isinstance(field.default, Bytes):
                keys[name]["default"] = _size(field.default)
            elif field.default is None or isinstance(field.default, BaseModel):
                keys[name].pop("default", None)
    plain: dict[str, Any] = _plain(made)
    return plain


def _size(size: Bytes) -> str:
    """
    >>> _size(Bytes(64 * 1024)), _size(Bytes(100_000_000))
    ('64KiB', '100MB')
    """
    if size % 10**6 == 0:
        return f"{size // 10**6}MB"
    return str(size).replace(".0 ", "").replace(" ", "")


def keys(whole: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every key of the file with its schema, as ``tier.cache``."""
    for described in (_of_database(whole), _of_disks(whole)):
        yield from _values(described, described, "")
        for table, inner in _tables(described):
            yield from _values(described, inner, f"{table}.")


def _inner_models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for field in model.model_fields.values():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from (kind, *_inner_models(kind))


def _plain(node: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(node, list):
        return [_plain(part) for part in node]
    if not isinstance(node, dict):
        return node
    # A key named ``title`` holds a schema; pydantic's own titles are text.
    made = {
        key: _plain(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }
    if isinstance(made.get("description"), str):
        made["description"] = one_line(made["description"])
    if "anyOf" in made:
        kinds = [kind for kind in made.pop("anyOf") if kind != {"type": "null"}]
        made |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return made


def _is_inline(described: Mapping[str, Any]) -> bool:
    """Written in one line, as ``nopm = { before = 1, after = 2 }``."""
    return all(about.get("type") == "number" for about in described["properties"].values())


def _resolve(top: Mapping[str, Any], about: Mapping[str, Any]) -> Mapping[str, Any] | None:
    name = str(about.get("$ref", "")).rpartition("/")[2]
    model: Mapping[str, Any] | None = top["$defs"].get(name)
    return model


def _tables(top: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, about in top["properties"].items():
        if (inner := _resolve(top, about)) and not _is_inline(inner):
            yield name, inner


def _values(
    top: Mapping[str, Any], described: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, about in described["properties"].items():
        inner = _resolve(top, about)
        if inner is None or _is_inline(inner):
            yield (
                f"{prefix}{name}",
                dict(about) | ({"properties": inner["properties"]} if inner else {}),
            )


def _rows(top: Mapping[str, Any], described: Mapping[str, Any], prefix: str) -> list[str]:
    rows = []
    for key, about in _values(top, described, prefix):
        is_required = key.rpartition(".")[2] in described.get("required", ())
        default = about.get("default")
        shown = "" if default in (None, "", []) else f"`{json.dumps(default)}`"
        rows.append(
            (f"`{key}`", _kind(about), "required" if is_required else shown, about["description"])
        )
    return _table(("Key", "Type", "Default", "Meaning"), rows)


def _kind(about: Mapping[str, Any]) -> str:
    """A type in words, from its JSON Schema."""
    kinds = about.get("anyOf", [about])
    choices = [f"`{value}`" for kind in kinds for value in kind.get("enum", ()) or _const(kind)]
    named = [_name(kind) for kind in kinds if "enum" not in kind and "const" not in kind]
    if _SIZE in kinds:
        named = ["size"]
    return " or ".join([*named, *([" ".join(choices)] if choices else [])])


def _const(about: Mapping[str, Any]) -> tuple[str, ...]:
    return (about["const"],) if "const" in about else ()


def _name(about: Mapping[str, Any]) -> str:
    if "properties" in about:
        return f"`{{ {', '.join(f'{name} = …' for name in about['properties'])} }}`"
    if about["type"] == "array":
        return f"list of {_kind(about['items'])}"
    above, low, high = (about.get(name) for name in ("exclusiveMinimum", "minimum", "maximum"))
    limits = [
        f"{sign} {limit}"
        for sign, limit in ((">", above), ("≥", low), ("≤", high))
        if limit is not None
    ]
    return " ".join([_NAMES[about["type"]], ", ".join(limits)]).strip()


# Markdown


def paragraphs(text: str | None) -> str:
    """The help of a command as Markdown."""
    return "\n\n".join(one_line(paragraph) for paragraph in (text or "").strip().split("\n\n"))


def one_line(text: str | None) -> str:
    """Help as Markdown: without line breaks, and without what marks text for the terminal."""
    # A bracket is marked in texts for the command line: else it would begin a style.
    return " ".join((text or "").split()).replace("``", "`").replace(r"\[", "[")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return [
        f"| {' | '.join(head)} |",
        f"|{'|'.join('---' for _ in head)}|",
        *(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in cells),
    ]


def main() -> None:
    """Write the reference."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Limits on what callers outside this computer's command line may name.

The API and the console run as who started the server, often root, so a text in a request must not
lead to any file of the server, program, device or host it likes. Each field of a request that holds
text is marked with what it names (:class:`Names`); a test sees that none is forgotten, and the text
of a field without a mark may hold no path. What is allowed beyond that stands in one file that the
administrator writes, ``remote.toml`` in hotset's folder of settings, read again at each request.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from hotset.core.errors import ForbiddenError, PrerequisiteError
from hotset.core.operation import FieldKind
from hotset.core.paths import config_dir, data_dir, repository_file
from hotset.core.rights import Names
from hotset.core.sql import EngineName

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

FILE = "remote.toml"
MACHINE_VARIABLE = "HOTSET_MACHINE"
"""The machine that the server was started for: it may be named."""
OF_THIS_COMPUTER = frozenset(("local", "uml", "vm"))
_NOT_DEVICES = ("/dev/shm", "/dev/fd", "/dev/mqueue", "/dev/hugepages")  # noqa: S108 - refused
_CERTIFICATES = ("/etc/ssl/certs", "/etc/pki", "/usr/share/ca-certificates")
_MODEL = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*", re.ASCII)
_PATH = re.compile(r"[/\\]|^~|^\.\.?$")


@dataclass(frozen=True, slots=True)
class Permitted:
    """Permissions in ``remote.toml``.

    :ivar folders: below them the API and the console may name files, to be read and written.
    :ivar machines: allowed values of ``--machine``.
    :ivar hosts: names under which the console is reached, beside addresses and ``localhost``.
    """

    folders: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class SettingsError(PrerequisiteError):
    """``remote.toml`` cannot be used; nothing is allowed then."""


class NotPermittedError(ForbiddenError):
    """A request names what the API and the console may not name; says how that is changed."""


def settings_file() -> Path:
    return config_dir() / FILE


def read_permitted() -> Permitted:
    """Read what the administrator allowed; nothing without the file.

    :raises SettingsError: not TOML, an unknown key, a value of another kind.
    """
    file = settings_file()
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Permitted()
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file}: {error}") from None
    known = tuple(Permitted.__slots__)
    for key, value in table.items():
        if key not in known:
            raise SettingsError(f"{file}: unknown key {key}; there are {', '.join(known)}")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise SettingsError(f'{file}: {key} is not a list of strings such as ["…"]')
    for folder in table.get("folders", ()):
        if not _is_full(folder) or PurePosixPath(folder) == PurePosixPath("/"):
            raise SettingsError(f"{file}: folders: {folder!r} is not a folder's full path")
    return Permitted(**{key: tuple(value) for key, value in table.items()})


def require(fields: Mapping[str, FieldInfo], values: Mapping[str, Any], engine: EngineName) -> None:
    """See that a request from elsewhere names nothing that it may not.

    :param values: by field; None where nothing is given.
    :param engine: the product that its DSN is of.
    :raises NotPermittedError: it does; names the field and what would allow it.
    """
    allowed = read_permitted()
    for name, field in fields.items():
        given = values.get(name)
        if given is None or given == field.default:
            continue
        texts = [given] if isinstance(given, str) else given
        if isinstance(texts, list | tuple):
            for text in (item for item in texts if isinstance(item, str)):
                _require(allowed, name, mark_of(field), text, engine)


def require_files(texts: Iterable[str], field: str) -> None:
    """Check as :func:`require` does what an experiment's file names in turn: files, and devices to
    be overwritten."""
    allowed = read_permitted()
    for text in texts:
        for path in _not_a_device(text):
            _require_below(allowed, field, path, _shipped_folders())


def mark_of(field: FieldInfo) -> Names:
    """Return what a field's text names. Without a mark: no path."""
    marks = FieldKind.from_field(field).metadata
    return next((mark for mark in marks if isinstance(mark, Names)), Names.WORD)


def _require(allowed: Permitted, field: str, names: Names, text: str, engine: EngineName) -> None:
    if names is Names.WORD and _PATH.search(text):
        raise NotPermittedError(f"{text!r} is a path, but a name is expected", field=field)
    if names is Names.MACHINE:
        _require_machine(allowed, field, text)
    for path in _FILES_IN.get(names, _no_files)(text):
        _require_below(allowed, field, path, _shipped_folders() if names is Names.FILE else ())
    if names is Names.DATABASE:
        from hotset.databases.connect import product_of_name

        for keyword, path in product_of_name(engine).files_of(text):
            more = _CERTIFICATES if keyword == "sslrootcert" else ()
            _require_below(allowed, field, path, more, f"{keyword}=")


def _require_below(
    allowed: Permitted, field: str, text: str, more: Iterable[str] = (), before: str = ""
) -> None:
    """:raises NotPermittedError: the path leads out of all folders, or to what hotset itself keeps:
    tokens, the console's password, the audit log, jobs and runs."""
    if any(_leads_into(text, own) for own in (data_dir(), config_dir())):
        raise NotPermittedError(
            f"{before}{text} is in a folder of hotset's own: the API and the console name no files"
            " there, whatever is allowed",
            field=field,
        )
    if _is_full(text) and any(_is_below(text, folder) for folder in (*allowed.folders, *more)):
        return
    what = "is not a full path" if not _is_full(text) else "is not below an allowed folder"
    raise NotPermittedError(
        f"{before}{text} {what}: the API and the console may name only files below the `folders`"
        f" listed in {settings_file()} on the server; the command line there may name any",
        field=field,
    )


def _require_machine(allowed: Permitted, field: str, text: str) -> None:
    own = os.environ.get(MACHINE_VARIABLE)
    if text not in OF_THIS_COMPUTER and text != own and text not in allowed.machines:
        raise NotPermittedError(
            f"{text} is not among the machines that the API and the console may use: add it to"
            f" `machines` in {settings_file()} on the server",
            field=field,
        )


def _is_full(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()


def _is_below(text: str, folder: str) -> bool:
    """True if a path stays in a folder, by its letters and by where links lead to."""
    if ".." in PurePosixPath(text.replace("\\", "/")).parts:
        return False
    if not text.startswith("/"):
        return PureWindowsPath(text).is_relative_to(PureWindowsPath(folder))
    real = Path(text).resolve(), Path(folder).resolve()
    return PurePosixPath(text).is_relative_to(folder) and real[0].is_relative_to(real[1])


def _leads_into(text: str, own: Path) -> bool:
    """True if a path is that of a folder, below it, or above it."""
    if not text.startswith("/"):
        return False  # no full path here
    real, folder = Path(text).resolve(), own.resolve()
    return real.is_relative_to(folder) or folder.is_relative_to(real)


def _is_device(text: str) -> bool:
    return _is_below(text, "/dev") and not any(
        PurePosixPath(os.path.realpath(text)).is_relative_to(device) for device in _NOT_DEVICES
    )


def _shipped_folders() -> tuple[str, ...]:
    """Experiments that come with hotset."""
    return (str(repository_file("experiments")),)


def _no_files(text: str) -> Iterator[str]:  # noqa: ARG001
    yield from ()


def _itself(text: str) -> Iterator[str]:
    yield text


def _without_weight(text: str) -> Iterator[str]:
    yield re.sub(r"@[0-9]*$", "", text)


def _not_of_the_library(text: str) -> Iterator[str]:
    if not _MODEL.fullmatch(text):
        yield text


def _not_a_device(text: str) -> Iterator[str]:
    if not _is_device(text):
        yield text


def _snapshot(text: str) -> Iterator[str]:
    kind, _, file = text.partition(":")
    if kind == "snapshot":
        yield file


def _paths_in(text: str) -> Iterator[str]:
    """Yield possible paths in a setting's value, which may be a list or a table."""
    _, _, value = text.partition("=")
    for word in re.split(r"[\s\"'\[\]{},=]+", value):
        if "/" in word or "\\" in word or word.endswith(".json"):
            yield word


_FILES_IN = {
    Names.FILE: _itself,
    Names.SCRIPT: _without_weight,
    Names.OUTPUT: _itself,
    Names.MODEL: _not_of_the_library,
    Names.DEVICE: _not_a_device,
    Names.ON_DISK: _snapshot,
    Names.SETTINGS: _paths_in,
}
"""The files that a text of such a field names."""

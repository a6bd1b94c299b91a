"""The Tcl scripts that hotset hands to HammerDB.

They hold no password (see `settings.PASSWORD_WORD`), so a script is kept with its run as it ran.
"""

from __future__ import annotations

from .settings import Dictionary, Workload

REFRESH_S = 5
"""Seconds between two lines of the transaction counter."""
_MARGIN_S = 600
"""How long HammerDB waits for its users after a timed run before it goes on without them."""


def probe(product: str, workload: Workload) -> str:
    """Print all settings; makes HammerDB keep its results where hotset looks for them.

    It runs first and in the same folder: these settings are read when HammerDB starts.
    """
    return _lines(
        *_choose(product, workload),
        "giset commandline sqlite_db TMP",
        "giset commandline jobs_disable 0",
        f"giset commandline keepalive_margin {_MARGIN_S}",
        "giset timeprofile profiler xtprof",
        "giset timeprofile xt_job_storage 1",
        "giset benchmark first_result NOPM",
        "print dict",
    )


def build(product: str, workload: Workload, dictionary: Dictionary) -> str:
    """Create and fill the tables."""
    return _lines(
        *_choose(product, workload),
        *_settings(dictionary),
        "set job [buildschema]",
        'puts "JOBID=$job"',
    )


def write_timed_run(product: str, users: int, dictionary: Dictionary) -> str:
    """A TPC-C run with ramp-up, window, transaction counter and time profile."""
    return _lines(
        *_choose(product, "TPC-C"),
        *_settings(dictionary),
        "loadscript",
        *_users(users),
        f"tcset refreshrate {REFRESH_S}",
        "tcset logtotemp 0",
        "vucreate",
        "tcstart",
        "set job [vurun]",
        "tcstop",
        "vudestroy",
        'puts "JOBID=$job"',
    )


def power(product: str, dictionary: Dictionary) -> str:
    """The 22 TPC-H queries by one user."""
    return _lines(
        *_choose(product, "TPC-H"),
        *_settings(dictionary),
        "loadscript",
        *_users(1),
        "vucreate",
        "set job [vurun]",
        "vudestroy",
        'puts "JOBID=$job"',
    )


def _choose(product: str, workload: Workload) -> tuple[str, ...]:
    return (f"dbset db {product}", f"dbset bm {workload}")


def _settings(dictionary: Dictionary) -> list[str]:
    """Every key; passwords are a variable that must not be escaped."""
    lines = [
        "if {![info exists ::quote_passwords]} {",
        '    error "this HammerDB cannot read a password from the environment: version 6 can"',
        "}",
        "set ::quote_passwords false",
    ]
    for section, keys in dictionary.items():
        lines += [f"diset {section} {key} {_brace(value)}" for key, value in keys.items()]
    return lines


def _users(users: int) -> tuple[str, ...]:
    return (
        f"vuset vu {users}",
        "vuset delay 20",
        "vuset repeat 500",
        "vuset iterations 1",
        "vuset showoutput 1",
        "vuset logtotemp 0",
    )


def _brace(value: str) -> str:
    """A Tcl word that is taken literally."""
    assert not set("{}\\\n") & set(value), f"not a plain value: {value!r}"
    return f"{{{value}}}"


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)

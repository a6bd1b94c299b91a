"""Files that another version of hotset may have written: what is said of one that is not known."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def unknown(place: object, what: str, without: str) -> str:
    """What is said of a file that cannot be read here: both ways out, and what the second loses.

    :param what: is not known of it.
    :param without: how it goes on once the file was moved away.

    >>> unknown("heat.sqlite", expected(9, 1), "and count anew")
    'heat.sqlite was written by another version of hotset (format 9, this one reads 1): use that \
one, or move the file away, and count anew'
    """
    return (
        f"{place} was written by another version of hotset ({what}): use that one, or move the file"
        f" away, {without}"
    )


def expected(found: object, known: int) -> str:
    """What is not known of a file whose format has a number."""
    return f"format {found!r}, this one reads {known}"


def strange(fields: Mapping[str, object], known: Collection[str]) -> str:
    """What is not known of a record with fields that are not known here; empty: all are."""
    found = [name for name in fields if name not in known]
    return f"its field {found[0]!r} is not known here" if found else ""

"""Extensions that a database has."""

from __future__ import annotations

from hotset.core.sql import Session

from ..base import sql


def extension_schema(connection: Session, name: str) -> str | None:
    """Where an extension lies, quoted: it need not be in a schema that is searched;
    None: this database has none."""
    rows = connection.query(sql("postgres", "extension_schema").format(name=name))
    return str(rows[0][0]) if rows else None

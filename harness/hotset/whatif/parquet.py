"""A trace as a Parquet file, for programs that analyse data: written, never read."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from hotset.block import flashdev
from hotset.core.errors import RequestError
from hotset.core.machines.local import Local

_PRINT = 'exec "$1" trace print "$2" > "$3"'
_COPY = """
COPY (
    SELECT (seconds * 1000000000)::BIGINT AS at_ns, kind = 'W' AS write, "offset", bytes
    FROM read_csv('{requests}', delim = ' ', header = false, auto_detect = false, columns = {{
        'seconds': 'DECIMAL(20, 9)', 'kind': 'VARCHAR', 'offset': 'UBIGINT', 'bytes': 'UBIGINT'}})
) TO '{output}' (FORMAT parquet)
"""


def write(local: Local, trace: Path, output: Path) -> None:
    """One row a request: ``at_ns`` (from the start of the trace; 0 without times), ``write``,
    ``offset``, ``bytes``.

    :param trace: in hotset's own format.
    :raises RequestError: the output cannot be written.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="hotset-trace-") as folder:
        # A pipe: as text, a trace takes several times its own room.
        requests = Path(folder) / "requests"
        os.mkfifo(requests)
        argv = ["sh", "-c", _PRINT, "sh", str(flashdev.program(local)), str(trace), str(requests)]
        with subprocess.Popen(argv) as printing, duckdb.connect() as database:
            try:
                database.execute(_COPY.format(requests=requests, output=_quoted(output)))
            except duckdb.Error as error:
                reason = str(error).splitlines()[0]
                raise RequestError(f"it cannot be written: {reason}", field="output") from error
            finally:
                printing.terminate()


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")

"""Files that a result is written to: tried before the work, so that nothing is measured in vain."""

from __future__ import annotations

from pathlib import Path

from hotset.cachelayer.common.errors import HotsetError, RequestError


class OutputError(HotsetError):
    """A file could not be written once there was something to write.

    :ivar output: the file.
    """

    def __init__(self, output: Path, error: OSError) -> None:
        super().__init__(f"{output} could not be written: {error.strerror or error}")
        self.output = output


def check_output(output: Path | None, field: str = "output") -> None:
    """See that a file can be written, and leave it as it is.

    :raises RequestError: it cannot; the message says why.
    """
    if output is None:
        return
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise RequestError(f"{output} is not a file in a folder", field=field)
    is_there = output.exists()
    if is_there and not output.is_file():
        return  # to open and close a pipe would end it for who reads
    try:
        output.open("ab").close()
        if not is_there:
            output.unlink()
    except OSError as error:
        raise RequestError(f"{output} cannot be written: {error.strerror}", field=field) from None

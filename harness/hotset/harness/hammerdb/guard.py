"""Runs one command and takes its whole process group down when hotset is gone, even by SIGKILL.

Started by `process.Supervised` in a session of its own; standard input is a pipe that only hotset
holds open. When that closes, hotset has ended. The kernel does the same for a single process
(PR_SET_PDEATHSIG), but neither for the children of a wrapper nor for a caller in a thread.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main(argv: list[str]) -> int:
    """Run `argv`, return its exit code (128 + signal for one that was killed)."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"{argv[0]} cannot be started: {error.strerror}\n")
        return 127
    return code if code >= 0 else 128 - code


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

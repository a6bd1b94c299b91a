"""Runs one command and takes its whole process group down when hotset is gone, even by SIGKILL.

Started by `supervised.Supervised` in a session of its own; standard input is a pipe that only
hotset holds open. When that closes, hotset has ended. The kernel does the same for a single process
(PR_SET_PDEATHSIG), but neither for the children of a wrapper nor for a caller in a thread.

What the command has written until then goes too: HammerDB may quote the password, which hotset
strikes out of what it keeps.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

_AFTER = "--after"
_GONE_S = 10.0


def main(scratch: str, argv: list[str]) -> int:
    """Run `argv`, return its exit code (128 + signal for one that was killed).

    :param scratch: the command's folder, removed when hotset is gone.
    """
    # pgbench has a file for each user.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # pgbench ends well by it; a handler, unlike a signal that is ignored, is not inherited.
    signal.signal(signal.SIGALRM, lambda *_: None)
    threading.Thread(target=_end_with_parent, args=(scratch,), daemon=True).start()
    try:
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"{argv[0]} cannot be started: {error.strerror}\n")
        return 127
    return code if code >= 0 else 128 - code


def _end_with_parent(scratch: str) -> None:
    while os.read(0, 4096):
        pass
    try:
        # In a session of its own, so that it outlives the group.
        subprocess.Popen(
            [sys.executable, "-I", __file__, _AFTER, str(os.getpgid(0)), scratch],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    finally:
        os.killpg(0, signal.SIGKILL)


def remove_after(group: int, scratch: str) -> None:
    """Remove a folder once nothing of a process group writes to it any more."""
    deadline = time.monotonic() + _GONE_S
    with suppress(ProcessLookupError):
        # Without anyone who reaps it a killed process stays for ever.
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.05)
    shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1] == _AFTER:
        remove_after(int(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main(sys.argv[1], sys.argv[2:]))

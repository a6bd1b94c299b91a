"""``python -m hotset.harness.service.child VERB…``: the CLI as a child process of the service.

With HOTSET_JOB in the environment, the exit code is left in that folder, whole or not at all: it
is there for whoever asks, even if the process that started the job is gone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from hotset.cachelayer.paths import write_whole

JOB_VARIABLE = "HOTSET_JOB"
CODE = "code"


def main() -> NoReturn:
    folder = os.environ.pop(JOB_VARIABLE, None)
    code = 1
    try:
        from hotset.harness import cli

        cli.main()
    except KeyboardInterrupt:
        # Before the CLI took the signals over: nothing was made yet.
        code = 130
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        if folder is not None:
            sys.stdout.flush()
            write_whole(Path(folder) / CODE, f"{code}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()

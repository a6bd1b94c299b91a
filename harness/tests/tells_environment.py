"""A job's process that tells its environment and where it works, and ends well."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.stdin.read()
    print(json.dumps({"environment": dict(os.environ), "folder": str(Path.cwd())}))
    (Path(os.environ["HOTSET_JOB"]) / "code").write_text("0\n")

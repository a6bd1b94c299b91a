"""Where the compiled driver (crate `tpcc/driver`) lies."""

import os
import shutil
from pathlib import Path

from hotset.core.paths import shipped_folder

from .record import DriverMissing

PROGRAM = "hotset-tpcc"


def program() -> Path:
    """HOTSET_TPCC_DRIVER, this checkout's release build, the one that was installed with hotset, or
    PATH.

    Raises DriverMissing.
    """
    named = os.environ.get("HOTSET_TPCC_DRIVER") or None
    built = Path(__file__).resolve().parents[2] / "driver/target/release" / PROGRAM
    for candidate in (named, built, shipped_folder(PROGRAM), shutil.which(PROGRAM)):
        if candidate is not None and Path(candidate).exists():
            return Path(candidate)
    raise DriverMissing(
        f"{PROGRAM} is not here: run `make build` in hotset's folder, or install a wheel for this"
        " kind of computer"
    )

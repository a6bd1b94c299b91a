"""What a computer has to have for a test to run on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

needs_fuse = pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs /dev/fuse")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(), reason="needs root and /dev/fuse"
)

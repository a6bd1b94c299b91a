"""Makes what is generated of the PowerShell module: ``python -m hotset.api.clients``."""

from __future__ import annotations

from . import make

if __name__ == "__main__":
    for path, text in make().items():
        path.write_text(text, encoding="utf-8", newline="\n")

"""Say so, once, when the kernels have to be compiled: the first use after an installation.

Numba keeps what it compiles beside the sources (or under NUMBA_CACHE_DIR), so this takes under a
minute, once per machine. A user who is not told takes it for a hang.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_told = False


def announce(kernel: Any) -> None:
    """Write one line to stderr if `kernel`, which stands for all, is not in Numba's cache."""
    global _told
    if _told:
        return
    _told = True
    cached = Path(kernel._cache.cache_path).glob(f"*{kernel.__name__}-*.nbi")
    if not any(cached):
        print(
            "lpma: compiling for this machine; this first use takes up to a minute",
            file=sys.stderr,
        )

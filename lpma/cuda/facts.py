"""Where kernels come from on this machine, for `lpma doctor`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .archive import Archive


def kernel_facts() -> dict[str, Any]:
    """`shipped`: what the archive of this installation holds, as Archive.facts says it; `cache`:
    where CuPy keeps what was compiled here, its `path`, `files` and `bytes`. Needs no CuPy and no
    device."""
    return {"shipped": Archive().facts(), "cache": _cache()}


def cache_path() -> Path:
    """Where CuPy keeps what it compiles."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def _cache() -> dict[str, Any]:
    path = cache_path()
    sizes = []
    for found in path.glob("*") if path.is_dir() else ():
        try:
            sizes.append(found.stat().st_size)
        except FileNotFoundError:  # another process has just renamed it
            continue
    return {"path": str(path), "files": len(sizes), "bytes": sum(sizes)}

"""Where compiled kernels are kept on disk, under names that never go stale.

Numba keeps what it compiles beside the source, and looks at that file's date alone: an edit of a
function that is inlined elsewhere goes unseen, a reinstallation loses everything, and a read-only
site-packages keeps nothing. Here each source file that has kernels gets a folder in the user's
cache directory, named after what compiling depends on: the *contents* of the file, of the files
that it imports and, where those have kernels, of what they import; and the versions of Python,
Numba and LLVM. (That a binary fits this processor, Numba checks itself.)

A stamp says that everything in a folder was compiled. It is gone with the folder, and when one of
the kernels is discarded. Several checkouts and processes may share the directory: so a folder is
evicted only if nobody has used it for a day, and by one rename.

This module must not import Numba: `ready.py` asks it where kernels would be before that is done.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]  # holds the three packages
KEPT = 4  # other folders of one source file that stay in any case: those used last
IN_USE_S = 86_400  # others stay, too, until nobody has used them for so long

STAMP = "complete-"
_EVICTED = ".evicted-"
_TEMPORARY = "lpma-kernels-"
_IMPORT = re.compile(r"^ *from (\.*)([\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_HAS_KERNELS = re.compile(r"^(?:from \.*[\w.]*\bjit import|from numba|import numba)", re.MULTILINE)


@lru_cache(maxsize=1)
def directory() -> Path:
    """Where kernels are kept: $NUMBA_CACHE_DIR, which tells Numba the same, or $LPMA_CACHE, or else
    ~/.cache/lpma, in a folder of their own; a temporary one if that cannot be written."""
    given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("LPMA_CACHE")
    below = Path("kernels") / versions()
    try:
        wanted = (Path(given) if given else Path.home() / ".cache" / "lpma") / below
        if any(wanted.glob(f"*/{STAMP}*")):  # by whoever made it, and perhaps not for us to write
            return wanted
        wanted.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=wanted).close()
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        base = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
        atexit.register(_remove, base, os.getpid())
        os.environ["NUMBA_CACHE_DIR"] = str(base)  # where the workers look
        return base / below
    return wanted


def _remove(base: Path, process: int) -> None:
    if os.getpid() == process:  # and no forked child
        shutil.rmtree(base, ignore_errors=True)


def is_temporary(kept: Path) -> bool:
    """Whether `directory` found none that can be written, so that kernels last no longer than the
    process."""
    return kept.parents[1].name.startswith(_TEMPORARY)


def discard(kept: str, kernel: Any) -> None:
    """Remove what is kept of a kernel, and its folder's stamps: not all is there any longer."""
    with suppress(OSError):
        for pattern in (f"{STAMP}*", f"*{kernel.__name__}-*"):
            for path in Path(kept).glob(pattern):
                path.unlink(missing_ok=True)


def versions() -> str:
    """What else a compiled kernel depends on, as the name of a folder."""
    python = f"{sys.implementation.cache_tag}{sys.abiflags}"
    return f"{python}-numba{version('numba')}-llvmlite{version('llvmlite')}"


def folder(module: str) -> Path:
    """Where the kernels of a module, by its full name, are kept as it is now."""
    return directory() / f"{module}-{source_key(module)}"


def is_ours(module: str) -> bool:
    """Whether the sources of a module are among those that `source_key` reads."""
    return _file(module) is not None


def make(kept: Path) -> None:
    """Make a module's folder, and evict those of other states of its source, but for the KEPT that
    were used last and those used within IN_USE_S."""
    kept.mkdir(parents=True, exist_ok=True)
    module = kept.name.rpartition("-")[0]
    others = {path: _used_at(path) for path in kept.parent.glob(f"{module}-*") if path != kept}
    last = sorted(others, key=others.__getitem__, reverse=True)[KEPT - 1 :]
    for old in last:
        if others[old] < time.time() - IN_USE_S:
            _evict(old)
    for interrupted in kept.parent.glob(f"{_EVICTED}*"):
        shutil.rmtree(interrupted, ignore_errors=True)


def _used_at(kept: Path) -> float:
    """When a folder was last written to or noted as used, in seconds since 1970; 0 if it is
    gone."""
    try:
        return kept.stat().st_mtime
    except OSError:
        return 0.0


def _evict(kept: Path) -> None:
    """Remove a folder, its stamps and its kernels in one step."""
    gone = kept.with_name(f"{_EVICTED}{kept.name}-{os.getpid()}")
    with suppress(OSError):  # another process has done it, or the directory is not ours
        kept.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def note_use(kept: Path) -> None:
    """Note that a process may read from a folder, so that others do not evict it."""
    with suppress(OSError):  # it is another user's
        os.utime(kept)


def size_bytes() -> int:
    """Bytes of everything that is kept, for all states of the sources."""
    total = 0
    for path in directory().rglob("*"):
        with suppress(FileNotFoundError):  # another process has just evicted it
            total += path.stat().st_size if path.is_file() else 0
    return total


@lru_cache(maxsize=1024)
def source_key(module: str) -> str:
    """A digest of the sources that a module's kernels are made from."""
    seen: set[str] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            # Constants come from anywhere, but code only from files that have kernels.
            if name == module or _HAS_KERNELS.search(_text(name)):
                pending += _imports(name)
    texts = "\0".join(f"{name}\0{_text(name)}" for name in sorted(seen))
    return hashlib.sha256(texts.encode()).hexdigest()[:16]


@lru_cache(maxsize=1024)
def _file(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    found = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in found if file.is_file()), None)


@lru_cache(maxsize=1024)
def _text(module: str) -> str:
    file = _file(module)
    return "" if file is None else file.read_text("utf-8")


def _imports(module: str) -> Iterator[str]:
    """The modules of ours that a module imports from."""
    file = _file(module)
    parts = module.split(".")
    package = parts if file is not None and file.name == "__init__.py" else parts[:-1]
    for dots, name, what in _IMPORT.findall(_text(module)):
        base = package[: len(package) + 1 - len(dots)] if dots else []
        full = ".".join([*base, *filter(None, [name])])
        names = [f"{full}.{word}" for word in re.findall(r"\w+", what)]
        yield from (found for found in (full, *names) if _file(found) is not None)

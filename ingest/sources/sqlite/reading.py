"""Reading a log without writing anything, and without permission to.

Idea: a SQLite file in write-ahead mode cannot be read just so. Its reader shares the index of the
write-ahead log, the file `-shm`, with writers, and makes it where there is none. What is done
depends on what lies beside the file:

    no -wal          nobody has it open: it is read as a file that does not change (`immutable`).
                     Should somebody write to it all the same, each read notices and raises.
    -wal and -shm    somebody has it open, or died: both are read, and written by nobody here
    -wal alone       the index would have to be written: refused

Invariant: within a process, a file is open either to be written or to be only read. A handle on an
unchanging file knows nothing of others, and closing it would release SQLite's locks of these
(POSIX); and the index is shared by all handles of a process as the first of them opened it.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable

from ...errors import SourceError

_lock = threading.Lock()
_open: Counter[tuple[str, bool]] = Counter()  # handles of this process, by file and writable


def claim(path: str, writable: bool) -> None:
    """Note a handle that is opened. Raises SourceError if that breaks the invariant."""
    place = os.path.realpath(path)
    with _lock:
        if _open[place, not writable]:
            has, asked = ("written", "only read") if not writable else ("only read", "written")
            raise SourceError(
                f"{path}: this process has it open to be {has}, not to be {asked}: "
                "open both the same way, or close the other first"
            )
        _open[place, writable] += 1


def release(path: str, writable: bool) -> None:
    """Note that a handle which was claimed is closed."""
    place = os.path.realpath(path)
    with _lock:
        _open[place, writable] -= 1
        if not _open[place, writable]:
            del _open[place, writable]


def mode_to_read(path: str) -> tuple[str, Callable[[], bool]]:
    """The mode of a SQLite URI that reads a log as it is, and whether what was read so far can be
    relied on. Raises SourceError if it cannot be read without writing."""
    before = _state(path)  # before the look for a -wal: who writes makes that first
    if not os.path.exists(f"{path}-wal"):
        return "ro&immutable=1", lambda: _state(path) == before
    if not os.path.exists(f"{path}-shm"):
        raise SourceError(
            f"{path}-wal: lies there without its -shm, so the log cannot be read without writing "
            "beside it: open it once with write permission, as with `lpma ingest`"
        )
    return "ro&readonly_shm=1", lambda: True


def _state(path: str) -> tuple[int, int, int] | None:
    """What changes when the file is written; None: it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

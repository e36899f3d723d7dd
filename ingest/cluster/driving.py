"""One driver at a time: the lock of a cluster's checkpoint directory.

Idea: shards on Ray outlive their driver and are found again by the next one, so a second driver
would find those of a first that still runs, and end them with itself. A driver holds this lock as
long as it has shards. The kernel lets go of it when its process ends, however it ends, so the next
one need not ask whether a lock is a dead driver's.

    DIR/cluster.lock    flocked by the driver, never removed; who it is, as a JSON object

Requires a directory in which locks work: the one that the driver's host knows by this name. Drivers
on two hosts keep each other out where both have the same directory.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from lpma.files import make_directory

from ..closing import Closing
from ..errors import CheckpointError, LockedError

FILE = "cluster.lock"
_MAX_BYTES = 4096


class DriversLock(Closing):
    """The lock of a cluster's checkpoint directory, which is made if there is none, held until
    `close`. Raises LockedError, which says who holds it; CheckpointError if it cannot be taken.

    >>> from ingest.cluster.driving import DriversLock
    >>> with DriversLock("state"):
    ...     try:
    ...         DriversLock("state")
    ...     except ingest.LockedError as error:
    ...         print("process" in str(error))
    True
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        path = Path(directory) / FILE
        lock = -1
        try:
            make_directory(directory)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = _told(lock)
            os.close(lock)
            raise LockedError(
                f"{directory}: another cluster runs here{told}: close it, or use another directory"
            ) from None
        except OSError as error:
            if lock >= 0:
                os.close(lock)
            raise CheckpointError(f"{path}: cannot be locked: {error}") from error
        with suppress(OSError):  # a full disk keeps nobody from being told less
            os.ftruncate(lock, 0)
            os.pwrite(lock, _this_driver(), 0)
        self._lock: int | None = lock

    def close(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def _this_driver() -> bytes:
    return json.dumps(
        {"pid": os.getpid(), "host": socket.gethostname(), "since": round(time.time())}
    ).encode()


def _told(lock: int) -> str:
    """Who holds it, as far as known."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(os.pread(lock, _MAX_BYTES, 0))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found["since"]))
        whose = "this process" if _is_this(found) else f"process {found['pid']}"
        return f" ({whose} on {found['host']}, since {since})"
    return ""


def _is_this(found: dict[str, object]) -> bool:
    return (found["pid"], found["host"]) == (os.getpid(), socket.gethostname())

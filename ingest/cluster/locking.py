"""Who holds a cluster's checkpoint directory: one driver at a time, and one control socket.

Idea: shards on Ray outlive their driver and are found again by the next one, so a second driver
would find those of a first that still runs, and end them with itself. A driver holds a lock as long
as it has shards. The kernel lets go of it when its process ends, however it ends, so the next one
need not ask whether a lock is a dead driver's.

    DIR/cluster.lock    flocked by the driver
    DIR/control.lock    flocked by who listens at the control socket

The files are never removed, and hold who locked them last, as a JSON object.

Requires a directory in which locks work. Drivers on two hosts keep each other out only where both
have the same one.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from lpma.file.atomic import make_directory

from ..errors import CheckpointError, LockedError
from ..types import Closing

OF_DRIVER, OF_CONTROL = "cluster.lock", "control.lock"
_MAX_BYTES = 4096


class DirectoryLock(Closing):
    """The lock `file` of a directory, which is made if there is none, held until `close`. Raises
    LockedError, which says who holds it as far as known; CheckpointError if it cannot be taken.

    >>> from ingest.cluster.locking import OF_DRIVER, DirectoryLock
    >>> with DirectoryLock("state", OF_DRIVER):
    ...     try:
    ...         DirectoryLock("state", OF_DRIVER)
    ...     except ingest.LockedError as error:
    ...         print("this process" in str(error))
    True
    """

    def __init__(self, directory: str | os.PathLike[str], file: str) -> None:
        path = Path(directory) / file
        lock = -1
        try:
            make_directory(directory)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            whose = _held_by(lock)
            os.close(lock)
            raise LockedError(
                f"{directory}: another cluster runs here{whose}: end it, or use another directory"
            ) from None
        except OSError as error:
            if lock >= 0:
                os.close(lock)
            raise CheckpointError(f"{path}: cannot be locked: {error}") from error
        with suppress(OSError):  # on a full disk whoever is refused is told less
            os.ftruncate(lock, 0)
            os.pwrite(lock, json.dumps(_this_process()).encode(), 0)
        self._lock: int | None = lock

    def close(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def _this_process() -> dict[str, str | int]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}


def _held_by(lock: int) -> str:
    """Who holds a lock, as far as known."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(os.pread(lock, _MAX_BYTES, 0))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found["since"]))
        this = _this_process()
        is_this = (found["pid"], found["host"]) == (this["pid"], this["host"])
        whose = "this process" if is_this else f"process {found['pid']}"
        return f" ({whose} on {found['host']}, since {since})"
    return ""

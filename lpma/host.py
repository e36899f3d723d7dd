"""The host that this process runs on: what its system offers, and a line to its user.

Only Linux has some of what makes us fast or lets us say more. What is asked of the system beyond
POSIX is asked here, and nowhere else (a rule of the house), with what serves in its place: so a
system without it, macOS above all, is slower or says less, and does nothing wrong. What cannot do
without says that it `needs_linux`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import sys
import threading
from contextlib import suppress
from pathlib import Path


def needs_linux(what: str, why: str) -> str | None:
    """That `what` cannot be had here, for want of `why`; None on Linux."""
    return None if sys.platform == "linux" else f"{what} needs Linux: {why}"


def tell(text: str) -> None:
    """Say `text` on stderr, in a line; if nobody can read it, nothing happens."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"lpma: {text}", file=sys.stderr, flush=True)


# Disks ---------------------------------------------------------------------------------------

# On macOS fsync ends when the drive has the data, in a cache of its own that a power cut empties;
# this waits for what fsync waits for elsewhere.
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_NO_FULL_SYNC = (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)  # of a file system without it
_HAS_DATA_SYNC = hasattr(os, "fdatasync")


def sync(file: int) -> None:
    """Return when an open file, or the names in an open directory, will outlast a power cut."""
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(file, _FULL_SYNC)
            return
        except OSError as error:
            if error.errno not in _NO_FULL_SYNC:  # after a failed sync a second one proves nothing
                raise
    os.fsync(file)


def sync_data(file: int) -> None:
    """As `sync`, for a file whose time of change need not last."""
    if _HAS_DATA_SYNC and not _FULL_SYNC:
        os.fdatasync(file)
    else:
        sync(file)


def read_at(file: int, target: memoryview, at: int) -> int:
    """Read into `target` from a place in an open file: how many bytes, 0 at its end."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [target], at)
    found = os.pread(file, len(target), at)
    target[: len(found)] = found
    return len(found)


def flock_holder(status: os.stat_result) -> int | None:
    """The process that flocked the file with this status. None if there is none, or the system does
    not say: it may be on another machine or in another container."""
    try:
        held = Path("/proc/locks").read_text()
    except OSError:
        return None
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in held.splitlines():
        words = line.split()  # 1: FLOCK ADVISORY WRITE 4242 fe:00:131090 0 EOF
        if words[1:2] == ["FLOCK"] and words[5:6] == [place]:
            return int(words[4])
    return None


def path_of_open(file: int) -> str:
    """A short path of an open directory, within this process. REQUIRES: Linux."""
    return f"/proc/self/fd/{file}"


_IN_ATTRIB = 0x4


def open_watch(path: str) -> tuple[int, int] | None:
    """Two files to poll, neither of which blocks: one can be read when `path` was touched, the
    other when `wake` was called with it. None if the system tells nobody."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        return None
    file = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if file < 0:
        return None
    if libc.inotify_add_watch(file, os.fsencode(path), _IN_ATTRIB) < 0:
        os.close(file)
        return None
    try:
        return file, os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    except OSError:
        os.close(file)
        raise


def wake(waker: int) -> None:
    """Let a poll of this one of `open_watch`'s files return."""
    with suppress(BlockingIOError):
        os.eventfd_write(waker, 1)


# Memory --------------------------------------------------------------------------------------

HAS_HUGE_PAGES = hasattr(mmap, "MADV_HUGEPAGE")
CAN_LEND_PAGES = hasattr(mmap, "MADV_FREE")  # Linux, macOS


def want_huge_pages(area: mmap.mmap, wanted: bool) -> None:
    """Have a mapping on huge pages, or not on them, if the system can."""
    if HAS_HUGE_PAGES:
        with suppress(OSError):  # a kernel may be built without huge pages
            area.madvise(mmap.MADV_HUGEPAGE if wanted else mmap.MADV_NOHUGEPAGE)


def lend_pages(area: mmap.mmap) -> None:
    """Let the system have a mapping's pages if it needs them; else their contents stay. Raises
    OSError. REQUIRES: CAN_LEND_PAGES."""
    area.madvise(mmap.MADV_FREE)


def available_memory_bytes() -> int | None:
    """Memory that can be allocated without swapping, or None if the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


# Processors ----------------------------------------------------------------------------------


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_kind() -> str:
    """What tells processors apart for compiled code: model and instruction sets, where known."""
    told = platform.machine()
    with suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("model name", "flags", "Features")):
                told += line
            elif not line.strip():
                break  # the first of several
    return told


def threads_of_process() -> list[int]:
    """This thread, as 0, and where the system tells them, all others of this process."""
    try:
        return [0, *map(int, os.listdir("/proc/self/task"))]
    except FileNotFoundError:
        return [0]


def step_back(niceness: int) -> None:
    """Let other threads go before this one, if a thread can have a priority of its own."""
    if sys.platform == "linux":  # elsewhere this would affect the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)


def has_nvidia_driver() -> bool:
    return Path("/proc/driver/nvidia/version").exists()

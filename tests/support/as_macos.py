"""macOS, as far as Python's standard library shows it to us: what only Linux has is taken away.

    take_away()                 in this process, before anything of ours is imported
    environment(folder)         for processes that begin so, by a hook written to `folder`

A sync must go by way of F_FULLFSYNC there; one by fsync alone, which leaves data in the drive's own
cache, ends the program. Our code is told that this is "darwin", the libraries are not, since they
were built for Linux.

Not emulated: the file system, the dynamic linker, an ARM processor, and what compiled libraries ask
of the system themselves.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import mmap
import multiprocessing
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
F_FULLFSYNC = 51
NOT_THERE = ("/proc", "/sys")
GONE: dict[ModuleType, tuple[str, ...]] = {  # names, or their patterns
    os: (
        "EFD_*", "GRND_*", "MFD_*", "O_DIRECT", "O_LARGEFILE", "O_NOATIME", "O_PATH", "O_RSYNC",
        "O_TMPFILE", "POSIX_FADV_*", "P_PIDFD", "RTLD_DEEPBIND", "RWF_*", "SCHED_BATCH",
        "SCHED_IDLE",
        "SCHED_RESET_ON_FORK", "SPLICE_*", "TFD_*", "XATTR_*", "copy_file_range", "eventfd*",
        "fdatasync", "getrandom", "getresgid", "getresuid", "getxattr", "listxattr", "memfd_create",
        "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "removexattr",
        "sched_getaffinity",
        "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity",
        "sched_setparam", "sched_setscheduler", "setns", "setresgid", "setresuid", "setxattr",
        "splice", "timerfd_*", "unshare",
    ),
    fcntl: ("F_ADD_SEALS", "F_GETLEASE", "F_GETPIPE_SZ", "F_GET_SEALS", "F_NOTIFY", "F_OFD_*",
            "F_SEAL_*", "F_SETLEASE", "F_SETPIPE_SZ"),
    mmap: ("MADV_DO*", "MADV_DONTDUMP", "MADV_DONTFORK", "MADV_HUGEPAGE", "MADV_HWPOISON",
           "MADV_MERGEABLE", "MADV_NOHUGEPAGE", "MADV_REMOVE", "MADV_UNMERGEABLE", "MAP_DENYWRITE",
           "MAP_EXECUTABLE", "MAP_POPULATE", "MAP_STACK"),
    resource: ("RUSAGE_THREAD", "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_RT*", "RLIMIT_SIGPENDING",
               "prlimit"),
    select: ("EPOLL*", "epoll"),
    signal: ("SIGCLD", "SIGPOLL", "SIGPWR", "SIGRTM*", "SIGSTKFLT", "pidfd_send_signal",
             "sigtimedwait", "sigwaitinfo"),
    socket: ("AF_ALG", "AF_CAN", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "MSG_CMSG_CLOEXEC",
             "MSG_CONFIRM", "MSG_ERRQUEUE", "MSG_FASTOPEN", "MSG_MORE", "SOCK_CLOEXEC",
             "SOCK_NONBLOCK", "SO_BINDTODEVICE", "SO_DOMAIN", "SO_INCOMING_CPU", "SO_MARK",
             "SO_PASSCRED", "SO_PASSSEC", "SO_PEERCRED", "SO_PEERSEC", "SO_PRIORITY",
             "SO_PROTOCOL", "TCP_CONGESTION", "TCP_CORK", "TCP_DEFER_ACCEPT", "TCP_INFO",
             "TCP_KEEPIDLE", "TCP_LINGER2", "TCP_QUICKACK", "TCP_SYNCNT", "TCP_USER_TIMEOUT",
             "TCP_WINDOW_CLAMP"),
    time: ("CLOCK_BOOTTIME", "CLOCK_TAI", "pthread_getcpuclockid"),
}  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    """Of processes that begin without what Linux has, and so do those that they start."""
    hook = "from tests.support.as_macos import take_away; take_away()\n"
    (folder / "sitecustomize.py").write_text(hook)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([os.fspath(folder), os.fspath(ROOT)])}


def take_away() -> None:
    for module, names in GONE.items():
        for name in [
            name for name in vars(module) if any(fnmatchcase(name, gone) for gone in names)
        ]:
            delattr(module, name)
    os.process_cpu_count = os.cpu_count  # type: ignore[attr-defined,unused-ignore]
    for owner, name in (
        (builtins, "open"), (io, "open"), (os, "open"), (os, "stat"), (os, "lstat"),
        (os, "listdir"), (os, "scandir"), (os, "readlink"), (os, "access"),
    ):  # fmt: skip
        setattr(owner, name, _without_proc(getattr(owner, name)))
    _sync_as_there()
    multiprocessing.set_start_method("spawn")
    import lpma.host

    system: Any = ModuleType("sys")
    system.__getattr__ = lambda name: getattr(sys, name)
    system.platform = "darwin"
    lpma.host.sys = system  # type: ignore[attr-defined]


def _without_proc(function: Callable[..., Any]) -> Callable[..., Any]:
    def asking(path: Any = ".", *args: Any, **named: Any) -> Any:
        if isinstance(path, str | os.PathLike) and f"{os.fspath(path)}/".startswith(
            tuple(f"{folder}/" for folder in NOT_THERE)
        ):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        return function(path, *args, **named)

    return asking


def _sync_as_there() -> None:
    plain, control = os.fsync, fcntl.fcntl

    def full(file: Any, command: int, argument: Any = 0) -> Any:
        return plain(file) if command == F_FULLFSYNC else control(file, command, argument)

    def not_enough(file: int) -> None:
        raise AssertionError("fsync leaves data in the drive's cache there: see lpma.host.sync")

    fcntl.F_FULLFSYNC = F_FULLFSYNC  # type: ignore[attr-defined,unused-ignore]
    fcntl.fcntl = full
    os.fsync = not_enough  # type: ignore[assignment]

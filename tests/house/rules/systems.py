"""What one system has and another lacks is asked in one place, lpma/host.py, with what serves
elsewhere. A call of Linux's that stands anywhere else ends the program on macOS, and no test on
Linux would see it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .sources import Source

PLACE = "lpma/host.py"
LINUX = frozenset({
    # os
    "copy_file_range", "fdatasync", "getrandom", "getxattr", "listxattr", "memfd_create",
    "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "pwritev2",
    "preadv2", "removexattr", "sched_getaffinity", "sched_setaffinity", "sched_setscheduler",
    "setns", "setresuid", "setxattr", "splice", "unshare", "eventfd", "eventfd_read",
    "eventfd_write", "timerfd_create", "EFD_CLOEXEC", "EFD_NONBLOCK", "O_DIRECT", "O_NOATIME",
    "O_PATH", "O_TMPFILE",
    # mmap, select, signal, time
    "MADV_HUGEPAGE", "MADV_NOHUGEPAGE", "MADV_DONTFORK", "MAP_HUGETLB", "MAP_NORESERVE",
    "MAP_POPULATE", "mremap", "epoll", "pidfd_send_signal", "sigtimedwait", "sigwaitinfo",
    "CLOCK_BOOTTIME", "pthread_getcpuclockid",
    # resource, socket
    "prlimit", "RUSAGE_THREAD", "MSG_NOSIGNAL", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_PEERCRED",
    "TCP_DEFER_ACCEPT", "TCP_KEEPIDLE", "TCP_QUICKACK", "TCP_USER_TIMEOUT",
    # and what is done otherwise elsewhere
    "fsync", "F_FULLFSYNC", "ru_maxrss", "setpriority", "sys.platform",
})  # fmt: skip
ALSO = {"ingest/cluster/niceness.py": {"setpriority"}}  # for Ray's workers, by thread


def only_linux(sources: Iterable[Source]) -> Iterator[str]:
    """Nothing but lpma/host.py uses what only some systems have, names a file of /proc or /sys, or
    asks which system this is."""
    for source in sources:
        if source.name == PLACE:
            continue
        names = LINUX - ALSO.get(source.name, set())
        for node in ast.walk(source.tree):
            found = _named(node)
            if found in names or found.startswith(("/proc/", "/sys/")):
                yield f"{source.name}:{getattr(node, 'lineno', 1)}: {found} is for {PLACE}"


def _named(node: ast.AST) -> str:
    """What a node says that could be of one system: a name after a dot or in an import, a text."""
    match node:
        case ast.Attribute(value=ast.Name(id="sys"), attr="platform"):
            return "sys.platform"
        case ast.Attribute(attr=name) | ast.alias(name=name):
            return name
        case ast.Constant(value=str(text)):
            return text
    return ""

"""Files that are either whole or absent: a temporary name first, then one rename.

    1. open a new file beside the target (a rename is atomic only within one file system)
    2. write it                                   4. rename it over the target
    3. fsync it, so that its bytes precede its name   5. fsync the directory, so that the name lasts

A crash before step 4 leaves the old file and a stray `.<name>.<random>.tmp`, which nothing reads;
an exception removes even that. Requires a POSIX file system.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from ..arguments.scalars import shown
from ..errors import LpmaError
from ..host import sync

Buffer = bytes | bytearray | memoryview
StrPath = str | os.PathLike[str]
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Writable(Protocol):
    """Something to write bytes to. `write` takes all of a buffer, or raises OSError."""

    def write(self, data: Buffer, /) -> object: ...


class PathError(LpmaError, OSError):
    """A path cannot be written or read: the message names the path and says what to do."""


def check_apart(path: StrPath, source: StrPath) -> None:
    """Raise PathError if `path`, to be written, is the file `source` that is being read."""
    if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
        raise PathError(f"{path}: is what is read, and would be lost; choose another name")


def check_writable(path: StrPath, suffix: str | None = None) -> Path:
    """The real path behind `path`, after checking that a file may be put there.

    `suffix` (with its dot), if given, is what the name must end with. Raises PathError on
    another suffix, a missing or read-only directory, and a target that is not a plain file."""
    if not isinstance(path, str | os.PathLike):
        raise PathError(f"path: a path, not {shown(path)}")
    given = Path(path)
    if suffix is not None and not given.name.endswith(suffix):
        raise PathError(f"{given}: the name must end with {suffix}")
    # A link is followed first, so that the rename replaces the file and not the link.
    target = Path(os.path.realpath(given))
    if not target.parent.is_dir():
        raise PathError(f"{given}: {target.parent} is not a directory; create it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PathError(f"{given}: {target.parent} is not writable; choose another directory")
    if target.exists():
        if not stat.S_ISREG(target.stat().st_mode):
            raise PathError(f"{given}: exists and is not a plain file; choose another name")
        if not os.access(target, os.W_OK):
            raise PathError(f"{given}: is read-only; choose another name or make it writable")
    return target


def write_all(file: int, data: Buffer) -> None:
    """Write all of `data`, bytes, to an open file, however short the single writes are."""
    left = memoryview(data)
    while left:
        written = os.write(file, left)
        if written == 0:
            raise OSError(errno.EIO, "a write took nothing")
        left = left[written:]


def fsync_directory(path: StrPath) -> None:
    """Make the names in directory `path` last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: StrPath) -> None:
    """Make directory `path` and its missing parents so that they last through a power cut: each
    one's name is synced before anything is made in it."""
    directory = Path(os.path.abspath(path))
    if directory.is_dir():
        # The process that made it may have been killed before the sync. A parent that we cannot
        # read is not ours.
        with suppress(PermissionError):
            fsync_directory(directory.parent)
        return
    make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    fsync_directory(directory.parent)


def _begin_of(target: Path) -> str:
    """How the names of temporary files for `target` begin. The random part must not push a long
    name over the file system's 255 bytes."""
    return f".{os.fsdecode(os.fsencode(target.name)[:200])}."


def temporaries_of(target: Path) -> list[Path]:
    """The temporary files of `atomic_write(target)` that are there: of processes that were killed
    in the middle of it, and of those that are at it."""
    form = re.compile(re.escape(_begin_of(target)) + r"[0-9a-f]{16}\.tmp")
    return [path for path in target.parent.iterdir() if form.fullmatch(path.name)]


@contextmanager
def atomic_write(path: StrPath, *, suffix: str | None = None) -> Iterator[BinaryIO]:
    """A new binary file, readable and seekable too, that becomes `path` when the block ends.

    On an exception the target stays as it was and the temporary file is removed. Raises PathError
    before anything is written if `check_writable` refuses, and OSError from the system; one of a
    full disk names the path."""
    target = check_writable(path, suffix)
    temporary = target.with_name(f"{_begin_of(target)}{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            if target.exists():
                os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            sync(descriptor)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise
    fsync_directory(target.parent)

"""What a process did to a directory: recorded by a preloaded library, read back as a list.

    in a child that has the library preloaded:   with recording(root, trace): …; mark(b"replied")
    in the parent:                               preloaded(directory), read_trace(trace)

A trace begins with what was there, as if it had just been made and synced, and the mark BEGUN.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

CREATE, MKDIR, WRITE, TRUNCATE, SYNC = "c", "d", "w", "t", "s"
RENAME, LINK, REMOVE, MARK, UNKNOWN = "r", "l", "u", "m", "?"
FOUND = "f"  # this inode is what lies at the path: after `going_on`
BEGUN = b"begun"

_RECORD = struct.Struct("<cQQIIQ")


class Unavailable(Exception):
    """There is nothing to record with on this machine."""


class Op(NamedTuple):
    """One call. Files and directories are named by inode where they are open, else by path, which
    is relative to the root."""

    code: str
    inode: int
    at: int  # where a write begins; the size that a truncation leaves
    path: str
    other: str  # the new path of a rename or a link
    data: bytes


def preloaded(directory: Path) -> Path:
    """The library, compiled into `directory`, for LD_PRELOAD. Raises Unavailable."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Unavailable("no C compiler (cc) to build tests/powercut/recorder.c with")
    library = directory / "recorder.so"
    source = Path(__file__).with_name("recorder.c")
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-o",
        str(library),
        str(source),
        "-ldl",
        "-pthread",
    ]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        raise Unavailable(f"recorder.c does not compile here: {built.stderr[:500]}")
    return library


@contextmanager
def recording(root: Path, trace: Path) -> Iterator[None]:
    """Record what this process does to `root`. REQUIRES: the library is preloaded, no files
    under `root` are open, and `root` is a real path."""
    recorder = _recorder()
    if recorder.powercut_start(os.fsencode(root), os.fsencode(trace)):
        raise OSError(f"{trace}: cannot be written")
    _note_all(recorder, root)
    mark(BEGUN)
    try:
        yield
    finally:
        recorder.powercut_stop()


def mark(data: bytes) -> None:
    """Note in the trace that this has happened: what was promised holds from here on."""
    _recorder().powercut_note(MARK.encode(), 0, b"", data, len(data))


def _recorder() -> ctypes.CDLL:
    recorder = ctypes.CDLL(None)
    note = recorder.powercut_note
    note.argtypes = (ctypes.c_char, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p,
                     ctypes.c_uint64)  # fmt: skip
    note.restype = None
    return recorder


def _note_all(recorder: ctypes.CDLL, path: Path) -> None:
    """Note what is there: made, written and synced."""

    def note(code: str, data: bytes = b"") -> None:
        inode = path.stat().st_ino
        recorder.powercut_note(code.encode(), inode, os.fsencode(path), data, len(data))

    if not path.is_dir():
        note(CREATE)
        note(WRITE, path.read_bytes())
    else:
        note(MKDIR)
        for child in path.iterdir():
            if not child.name.endswith("-shm"):
                _note_all(recorder, child)
    note(SYNC)


def read_trace(path: Path, root: Path) -> list[Op]:
    """Raises ValueError on a call that could not be recorded."""

    def relative(path: bytes) -> str:
        return os.path.relpath(os.fsdecode(path), root) if path else ""

    data = path.read_bytes()
    ops = []
    at = 0
    while at < len(data):
        code, inode, offset, *sizes = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        parts = []
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        name, other, content = parts
        if code.decode() == UNKNOWN:
            raise ValueError(f"a call that recorder.c does not know: {os.fsdecode(name)}")
        ops.append(Op(code.decode(), inode, offset, relative(name), relative(other), content))
    return ops


def begin(ops: list[Op]) -> int:
    """How many calls of a trace say what was there."""
    return len(ops) - ops[::-1].index(Op(MARK, 0, 0, "", "", BEGUN))


def going_on(first: list[Op], second: list[Op]) -> list[Op]:
    """One trace of two, where the second process began with what the first had left when it was
    killed: what the first had not synced is not synced yet."""
    there = [
        op._replace(code=FOUND) for op in second[: begin(second)] if op.code in (CREATE, MKDIR)
    ]
    return [*first, *there, *second[begin(second) - 1 :]]

"""The end of a file of results: its last whole line, and half a line that a crash left behind it.

The file that a user names may be one of something else, by a slip. So nothing is cut off but the
beginning of a line that we write, and only plain files are taken: a device has no end, a pipe keeps
nothing. What is read is bounded: pieces grow from the file's end until the last whole line lies in
one, which is no longer than a line that we write.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from ..errors import RecordError, SourceError
from ..formats.results import MAX_LINE_BYTES, Result, begins_result_line, decode_result_line

FIRST_PIECE_BYTES = 1 << 16
_PIECES_GROW = 8
_MAX_TAIL_BYTES = 2 * (MAX_LINE_BYTES + 1)  # a whole line, and half of one behind it


def check_plain(path: Path) -> None:
    """Raise SourceError if something other than a plain file is at `path`. Nothing may be there."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise SourceError(f"{path}: results cannot be written there: {error}") from error
    if not stat.S_ISREG(mode):
        raise SourceError(
            f"{path}: is not a plain file, and results are kept in one: name another file"
        )


def check_holds_results(path: Path) -> None:
    """Raise SourceError if something other than a file of results is at `path`. Nothing may be
    there, and half a line at the end."""
    check_plain(path)
    try:
        with open(path, "rb") as file:
            end_of(file)
    except FileNotFoundError:
        return
    except RecordError as error:
        raise no_results(path, error) from None
    except OSError as error:
        raise SourceError(f"{path}: results cannot be written there: {error}") from error


def no_results(path: Path, error: RecordError) -> SourceError:
    return SourceError(f"{path}: this is no file of results ({error}): name another one")


def end_of(file: BinaryIO) -> tuple[Result | None, int, int]:
    """The last result in a file, None if there is none; where its whole lines end; and its size.
    Raises RecordError if its last whole line is no result, or what follows begins none."""
    size = file.seek(0, os.SEEK_END)
    tail, start, end = _last_line(file, size)
    half = tail[end:]
    if not begins_result_line(half):
        raise RecordError("its end is not the beginning of a line of results")
    newest = decode_result_line(tail[start:end]) if end else None
    return newest, size - len(half), size


def _last_line(file: BinaryIO, size: int) -> tuple[bytes, int, int]:
    """The file's tail, and where the last whole line in it starts and ends; both are 0 if there is
    none. Raises RecordError if it does not lie within _MAX_TAIL_BYTES of the file's end."""
    length = FIRST_PIECE_BYTES
    while True:
        length = min(length, size, _MAX_TAIL_BYTES)
        file.seek(size - length)
        tail = file.read(length)
        end = tail.rfind(b"\n") + 1
        start = tail.rfind(b"\n", 0, end - 1) + 1 if end else 0
        if start or length == size:
            return tail, start, end
        if length == _MAX_TAIL_BYTES:
            raise RecordError(f"its last line has more than {MAX_LINE_BYTES:,} bytes")
        length *= _PIECES_GROW

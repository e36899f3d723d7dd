"""A shard's newest good checkpoint, brought back from kept storage into an empty directory.

    <directory>/restored      the number of the checkpoint that was brought back

In steps that are repeated as comments where they happen:

    1. fetch the files of the newest whole copy
    2. check every byte by its sums; if one is bad, take the copy before it
    3. note the number in `restored`
    4. rename: the checkpoint is there now

Invariants, at any moment and so after any crash:
1. The directory holds no checkpoint, or a good one.
2. While its newest checkpoint is one that was brought back, `restore` says so: the journal since is
   not there, and that loss is to be accepted.
"""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path

from lpma.file.atomic import atomic_write, fsync_directory, make_directory, write_all
from lpma.host import sync

from ..errors import CheckpointError
from ..events import log_event
from ..state.checkpoint import read_checkpoint, verify
from ..state.directory import checkpoint_numbers, checkpoint_path
from ..state.journal import segment_numbers
from .copies import TOKEN, copies_in, number_of, place_of
from .storage import Storage

RESTORED = "restored"


def restore(
    keep: str | Storage, number: int, directory: str | os.PathLike[str], part: str = ""
) -> bool:
    """Bring the newest good checkpoint of a shard back, if `directory` has neither a checkpoint
    nor a journal. keep: a path, a URI, or a `Storage`. number, part: as for `folder_of`.

    Returns whether the directory's newest checkpoint is one that was brought back, now or at an
    earlier start: then the resume is to be told `accept_journal_loss=True`. False as well if
    nothing is kept: then the shard begins anew, with the log.

    Raises CheckpointError if the place does not answer, if it has copies and none is good, or none
    and cannot be written.
    REQUIRES: no pipeline and no other `restore` has the directory."""
    path = Path(directory)
    there = checkpoint_numbers(path)
    if there or (path.is_dir() and segment_numbers(path)):
        return bool(there) and there[-1] == _restored(path)
    place = place_of(keep, number, part)
    whole, _ = copies_in(place)
    problems = []
    for copy in reversed(whole):
        try:
            _fetch(place, copy, path)
        except CheckpointError as error:
            problems.append(f"{copy}: {error}")
            continue
        for problem in problems:
            log_event("damaged checkpoint", logging.WARNING, problem=problem, used=number_of(copy))
        log_event("restored", place=str(place), directory=str(path), number=number_of(copy))
        return True
    if problems:
        raise CheckpointError(
            f"{place}: no copy of a checkpoint can be brought back ({'; '.join(problems)}): try "
            "again; if they are damaged, remove the folder to read the log from its beginning"
        )
    place.write(TOKEN, b"")  # it is known now if nothing can be kept there
    return False


def _restored(directory: Path) -> int | None:
    try:
        return int((directory / RESTORED).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _fetch(place: Storage, copy: str, directory: Path) -> None:
    """Put a copy into `directory` as the checkpoint it is, or raise CheckpointError."""
    number = number_of(copy)
    temporary = directory / f".tmp-{number:010d}"
    try:
        make_directory(directory)
        with suppress(FileNotFoundError):
            shutil.rmtree(temporary)  # of a restore that was killed
        temporary.mkdir()
        names = [name for name in place.list() if name.startswith(f"{copy}/")]
        for name in names:
            _fetch_file(place, name, temporary / name.removeprefix(f"{copy}/"))  # restore 1
        verify(read_checkpoint(temporary, number))  # restore 2
        fsync_directory(temporary)
        with atomic_write(directory / RESTORED) as file:
            file.write(str(number).encode())  # restore 3
        os.rename(temporary, checkpoint_path(directory, number))  # restore 4
        fsync_directory(directory)
    except OSError as error:
        raise CheckpointError(f"{directory}: cannot be written: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _fetch_file(place: Storage, name: str, path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        for piece in place.pieces(name):
            write_all(descriptor, piece)
        sync(descriptor)
    finally:
        os.close(descriptor)

"""Kept storage: a shard's newest checkpoints, copied to a place that outlives its disk, and brought
back from there into an empty directory.

Idea: a checkpoint never changes once it is committed, and it is sealed by its manifest. So a mirror
need not take part in anything: it looks at the directory, copies what is new, the manifest last,
and the manifest makes the copy whole. The journal is not kept. A shard that starts from a kept
checkpoint (`restore`) reads the log again from there: no update is lost or applied twice, but
stamps and versions since then are new, and replies that are repeated may differ.

    <place>/shard-0003/keeper                            a random token of the last mirror to begin
    <place>/shard-0003/checkpoint-0000000012-9f3a61c2/   the files of checkpoint 12
    <directory>/restored                                 the number of the one brought back

Steps, repeated as comments where they happen:

    keep                                             restore
    1. open the newest checkpoint's files            1. fetch the files of the newest whole copy
    2. copy all but the manifest, and compare        2. check every byte by its sums; if one is bad,
       sums and lengths with it                         take the copy before it
    3. look whether our token still stands           3. note the number in `restored`
    4. copy the manifest: it is whole now            4. rename: the checkpoint is there now
    5. remove all but it and the one before

Tricks: the files are opened before they are copied, so it does no harm that the pipeline removes
the checkpoint meanwhile. Each copy's folder has a random end, so no object is written twice, and
two keepers that do not know of each other never mix their files.

Invariants, at any moment and so after any crash:
1. A copy is whole if and only if its manifest is there. Once there was a whole copy, there is one.
2. Once a mirror has taken over, the one before it begins to complete no copy, and removes none.
3. The directory holds no checkpoint, or a good one. While its newest is one that was brought back,
   `restore` says so: the journal since is not there, and that loss is to be accepted.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import shutil
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lpma.file.atomic import atomic_write, fsync_directory, make_directory, write_all
from lpma.host import sync

from ..errors import CheckpointError, LockedError
from ..events import log_event
from ..state.checkpoint import MANIFEST, Checkpoint, read_checkpoint, verify
from ..state.directory import checkpoint_numbers, checkpoint_path
from ..state.journal import segment_numbers
from ..types import Closing
from .spec import folder_of
from .storage import Storage

KEPT = 2  # whole copies
TOKEN, RESTORED = "keeper", "restored"
LONGEST_WAIT_S = 60.0  # before a place that failed is tried again

_COPY = re.compile(r"checkpoint-(\d{10})-[0-9a-f]{8}")


def place_of(keep: str | Storage, number: int, part: str) -> Storage:
    """The place of a shard's copies in `keep`: a path, a URI, or a `Storage`."""
    place = Storage.of(keep) if isinstance(keep, str) else keep
    return place.within(folder_of(number, part))


def _number_of(copy: str) -> int:
    return int(copy.split("-")[1])


def _copies_in(place: Storage) -> tuple[list[str], set[str]]:
    """The copies that are whole, by number, and all that are there."""
    names = place.list()
    there = {name.partition("/")[0] for name in names}
    copies = {name for name in there if _COPY.fullmatch(name)}
    return sorted(copy for copy in copies if f"{copy}/{MANIFEST}" in names), copies


@dataclass(frozen=True)
class MirrorStatus:
    """How far keeping is. number, time: of the newest checkpoint that this mirror has copied, and
    when it was taken, ms since 1970; None before the first. problem: what has failed since; None
    if nothing has."""

    number: int | None = None
    time: int | None = None
    problem: str | None = None


class CheckpointMirror(Closing):
    """Copies the checkpoints of `directory`, each soon after it was committed, by a thread of its
    own from `start` on. A place that fails does not stop the stream: it is tried again, and
    `status` and the event "not kept" tell of it. `close` copies the last one first.

    keep: a path, a URI, or a `Storage`. number, part: of the shard, as for `folder_of`. interval_s:
    between two looks at the directory. Raises CheckpointError if `keep` names no place."""

    def __init__(
        self,
        keep: str | Storage,
        number: int,
        directory: str | os.PathLike[str],
        part: str = "",
        *,
        interval_s: float = 1.0,
    ) -> None:
        self.status = MirrorStatus()
        self._place = place_of(keep, number, part)
        self._directory = Path(directory)
        self._interval_s = interval_s
        self._token = secrets.token_hex(16).encode()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_begun = False
        try:
            self._begin()
        except CheckpointError as error:
            self._note(str(error))

    def _begin(self) -> None:
        """Take over from whoever kept before."""
        if not self._has_begun:
            self._place.write(TOKEN, self._token)
            self._has_begun = True

    def start(self) -> None:
        """Keep from now on, beside the stream."""
        self._thread = threading.Thread(target=self._run, name="lpma-mirror", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        wait_s = self._interval_s
        while not self._closed.wait(wait_s):
            self.look()
            failed = self.status.problem is not None
            wait_s = min(2 * wait_s, LONGEST_WAIT_S) if failed else self._interval_s

    def close(self) -> None:
        """Copy what is not kept yet, and end. A second call does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self.look()

    def look(self) -> None:
        """Copy the newest checkpoint, if it is not kept yet. REQUIRES: one thread at a time."""
        newest = self._newest()
        if newest is None or newest == self.status.number:
            return
        try:
            self._begin()
            self._keep(newest)
        except Exception as error:  # noqa: BLE001 - the stream goes on, and `status` tells
            if newest != self._newest():
                return  # the pipeline has gone on and removed it: the next look takes the newer one
            self._note(f"checkpoint {newest}: {error}")

    def _note(self, problem: str) -> None:
        if self.status.problem is None:  # not again at every try
            log_event("not kept", logging.WARNING, place=str(self._place), problem=problem)
        self.status = MirrorStatus(self.status.number, self.status.time, problem)

    def _newest(self) -> int | None:
        numbers = checkpoint_numbers(self._directory)
        return numbers[-1] if numbers else None

    def _keep(self, number: int) -> None:
        found = read_checkpoint(checkpoint_path(self._directory, number), number)
        copy = f"checkpoint-{number:010d}-{secrets.token_hex(4)}"
        try:
            self._write(found, copy)
        except Exception:
            with suppress(CheckpointError):
                self._place.remove(copy, MANIFEST)
            raise
        self.status = MirrorStatus(number, found.time)
        log_event("kept", place=str(self._place), number=number, bytes=found.nbytes)
        self._remove_others(copy)  # keep 5

    def _write(self, found: Checkpoint, copy: str) -> None:
        with ExitStack() as opened:
            files = {
                name: opened.enter_context(open(found.path / name, "rb"))
                for name in (*found.files, MANIFEST)
            }  # keep 1
            manifest = files.pop(MANIFEST)
            for name, file in files.items():
                self._copy(found, name, file, f"{copy}/{name}")  # keep 2
            sizes = {name: size for name, (size, _) in found.files.items()}
            if self._place.within(copy).list() != sizes:
                raise CheckpointError(f"{self._place}: {copy} is not as it was written")
            self._check()  # keep 3
            self._place.write(f"{copy}/{MANIFEST}", manifest.read())  # keep 4

    def _copy(self, found: Checkpoint, name: str, file: BinaryIO, target: str) -> None:
        digest = hashlib.blake2b()
        size = 0
        for piece in self._place.copy(file, target):
            digest.update(piece)
            size += len(piece)
        if (size, digest.hexdigest()) != found.files[name]:
            raise CheckpointError(f"checkpoint {found.number}: {name} is damaged, and not kept")

    def _check(self) -> None:
        if self._place.read(TOKEN) != self._token:
            raise LockedError(
                f"{self._place}: another mirror has taken over: two shards share a number, or one "
                "that was given up runs on; end it"
            )

    def _remove_others(self, newest: str) -> None:
        """Remove all copies but `newest` and the best one before it. What is not whole was left by
        a mirror that is gone, and so was what has the same number or a higher one."""
        whole, all_there = _copies_in(self._place)
        before = [copy for copy in whole if _number_of(copy) < _number_of(newest)]
        kept = {newest, *before[-(KEPT - 1) :]}
        for copy in all_there - kept:
            self._place.remove(copy, MANIFEST)


# Bringing back -------------------------------------------------------------------------------


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
    whole, _ = _copies_in(place)
    problems = []
    for copy in reversed(whole):
        try:
            _fetch(place, copy, path)
        except CheckpointError as error:
            problems.append(f"{copy}: {error}")
            continue
        for problem in problems:
            log_event("damaged checkpoint", logging.WARNING, problem=problem, used=_number_of(copy))
        log_event("restored", place=str(place), directory=str(path), number=_number_of(copy))
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
    number = _number_of(copy)
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

"""Kept storage: a shard's newest checkpoints, copied to a place that outlives its disk.

Idea: a checkpoint never changes once it is committed, and it is sealed by its manifest. So a mirror
need not take part in anything: it looks at the directory, copies what is new, the manifest last,
and the manifest makes the copy whole. The journal is not kept. A shard that starts from a kept
checkpoint (`restore`) reads the log again from there: no update is lost or applied twice, but
stamps and versions since then are new, and replies that are repeated may differ.

`copies.py` says how copies lie there. In steps that are repeated as comments where they happen:

    1. open the newest checkpoint's files
    2. copy all but the manifest, and compare sums and lengths with it
    3. look whether our token still stands
    4. copy the manifest: it is whole now
    5. remove all but it and the one before

Tricks: the files are opened before they are copied, so it does no harm that the pipeline removes
the checkpoint meanwhile. Each copy's folder has a random end, so no object is written twice, and
two keepers that do not know of each other never mix their files.

Invariants, at any moment and so after any crash:
1. A copy is whole if and only if its manifest is there.
2. Once there was a whole copy, there is one.
3. Once a mirror has taken over, the one before it begins to complete no copy, and removes none.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import CheckpointError, LockedError
from ..events import log_event
from ..state.checkpoint import MANIFEST, Checkpoint, read_checkpoint
from ..state.directory import checkpoint_numbers, checkpoint_path
from ..types import Closing
from .copies import TOKEN, copies_in, number_of, place_of
from .copies import folder_of as folder_of
from .restore import restore as restore
from .storage import Storage

KEPT = 2  # whole copies
LONGEST_WAIT_S = 60.0  # before a place that failed is tried again


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
    between two looks at the directory. Raises CheckpointError if `keep` names no place.

    >>> from ingest.cluster.checkpoint_mirror import CheckpointMirror, restore
    >>> log = ingest.SqliteLog("log")
    >>> _ = log.produce("updates", ingest.encode_updates([1, 2], [2, 3]))
    >>> with CheckpointMirror("kept", 0, "state") as mirror:
    ...     with ingest.Pipeline(log, lpma.Graph(device="cpu"), "state") as pipeline:
    ...         _ = pipeline.run("end")
    >>> mirror.status.number
    1
    >>> restore("kept", 0, "another")
    True
    >>> resumed = ingest.Pipeline.resume("another", log, accept_journal_loss=True)
    >>> resumed.graph.num_edges
    2
    >>> resumed.close()
    """

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
        whole, all_there = copies_in(self._place)
        before = [copy for copy in whole if number_of(copy) < number_of(newest)]
        kept = {newest, *before[-(KEPT - 1) :]}
        for copy in all_there - kept:
            self._place.remove(copy, MANIFEST)

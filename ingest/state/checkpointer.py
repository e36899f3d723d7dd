"""Checkpoints alongside the stream: taken between two batches, written while the stream goes on.

Idea: the stream waits for a copy of the graph in memory, which is shorter than a batch, and for the
journal's next segment. A separate thread sums, writes and commits the copy. What happens in the
meantime is in that segment, so it does not matter when the commit happens, or whether it does.

Invariants:
1. One commit at a time, and one set of images in memory: the next one is copied over the last.
2. What was taken is never changed: it shares nothing that the stream still writes to.
3. What stopped a commit is raised by the next call of `look`, `finish` or `begin`, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from lpma.host import step_back

from ..events import log_event
from ..settings import CheckpointFigures, Settings
from ..timers import now_ms
from ..types import Image, Partition
from .checkpoint import CheckpointSnapshot, State
from .directory import CheckpointDirectory
from .journal import Entry

NICENESS = 5  # of the thread that writes: a third of the stream's share of a core
MAX_JOURNAL_BYTES = 64 << 20  # then a checkpoint is due, so that a replay stays short


class Part(Protocol):
    """Something a checkpoint keeps, in a file of its own: the graph, above all. `old` is an image
    of it that is no longer needed, or None: its memory may be used again."""

    def image(self, old: Any = None, /) -> Image: ...


class Checkpointer:
    """Takes checkpoints of `parts`, by the names of their files, into `directory`. `committed` is
    called with the offsets of each, by the thread that wrote it.

    REQUIRES: the directory's journal is there. One thread at a time."""

    def __init__(
        self,
        directory: CheckpointDirectory,
        parts: Mapping[str, Part],
        settings: Settings,
        state: State,
        committed: Callable[[Mapping[Partition, int]], None],
        taken: int | None = None,
    ) -> None:
        """taken: when the newest checkpoint there was taken, ms since 1970; None: there is none."""
        self.figures: CheckpointFigures | None = None  # of the last one committed
        assert directory.journal is not None
        self._directory = directory
        self._journal = directory.journal
        self._parts = dict(parts)
        self._settings = settings
        self._committed = committed  # is told the offsets of each
        self._saved = state  # as of the last one taken
        self._saved_time = time.monotonic()
        # Of a checkpoint that a process before has taken, its age at the start.
        self._age_before = 0.0 if taken is None else max(0, now_ms() - taken) / 1000
        self._images: dict[str, Image] = {}
        self._thread = ThreadPoolExecutor(1, "lpma-checkpoint", step_back, (NICENESS,))
        self._running: Future[CheckpointFigures] | None = None

    def prepare(self) -> None:
        """Allocate the memory for the images, so that the stream waits for no fresh pages."""
        self._images = {name: part.image() for name, part in self._parts.items()}

    def is_due(self, state: State) -> bool:
        """Whether one should be begun now; never while one is under way."""
        if self._running is not None:
            return False
        old = self._since_saved >= self._settings.checkpoint_interval
        many = state.operations - self._saved.operations >= self._settings.checkpoint_operations
        return many or (old and self.is_behind(state)) or self._journal.size > MAX_JOURNAL_BYTES

    @property
    def age(self) -> float:
        """Seconds since the newest checkpoint was taken, also by a process before this one: where
        none can be written, and each start ends at that, it grows from start to start."""
        return self._age_before + self._since_saved

    @property
    def _since_saved(self) -> float:
        """The same, or since the start: a checkpoint is not due because the stream stood still."""
        return time.monotonic() - self._saved_time

    def is_behind(self, state: State) -> bool:
        """Whether anything was applied since the last was taken."""
        return state.positions != self._saved.positions

    def begin(self, state: State, waiting: Sequence[Entry]) -> None:
        """Take a checkpoint, and let it be written; waits for one under way. `waiting` is what the
        journal says of what was buffered and is not applied.

        Raises CheckpointError, and OutOfMemory if there is no memory for the images: then nothing
        has happened."""
        self.finish()
        started = time.perf_counter()
        old, self._images = self._images, {}
        images = {
            name: part.image(old.pop(name, None)) for name, part in self._parts.items()
        }  # commit 1
        taken = CheckpointSnapshot(
            replace(state, producers=dict(state.producers)),
            images,
            self._journal.rotate(),  # commit 2
            list(waiting),
            now_ms(),
        )
        self._images = images
        self._saved, self._saved_time, self._age_before = state, time.monotonic(), 0.0
        stopped = time.perf_counter() - started
        self._running = self._thread.submit(self._commit, taken, started, stopped)

    def _commit(
        self, taken: CheckpointSnapshot, started: float, stopped: float
    ) -> CheckpointFigures:
        number, nbytes = self._directory.commit(taken)
        self._committed({p: at.offset for p, at in taken.state.positions.items()})
        return CheckpointFigures(
            number=number,
            time=taken.time,
            operations=taken.state.operations,
            version=taken.state.version,
            bytes=nbytes,
            stopped=stopped,
            seconds=time.perf_counter() - started,
        )

    def look(self) -> None:
        """Note a commit that has ended. Raises what stopped it."""
        if self._running is not None and self._running.done():
            self.finish()

    def finish(self) -> None:
        """Wait for the commit under way, if there is one. Raises what stopped it."""
        if self._running is not None:
            running, self._running = self._running, None
            self.figures = figures = running.result()
            log_event("checkpoint", number=figures.number, taken_ms=figures.time,
                      operations=figures.operations, version=figures.version, bytes=figures.bytes,
                      stopped_seconds=figures.stopped,
                      duration_seconds=figures.seconds)  # fmt: skip

    def close(self) -> None:
        """Wait for the commit under way, and release the directory."""
        self.end()
        self._directory.close()

    def discard(self) -> None:
        """The same, with everything that is in the directory."""
        self.end()
        self._directory.discard()

    def end(self) -> None:
        """Wait for the commit under way; none can begin any more."""
        self._thread.shutdown()

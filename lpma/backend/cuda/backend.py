"""The CUDA backend: the operations of protocol.py, each a kernel or two.

A batch without expansion or global merge is one launch if it is small, five if it is large, and a
look or two at what the device answers: update/fused.py, upload/zero_copy.py. A mixed one, and what
the device refused, is applied step by step: update/stepwise.py. An operation by
itself: update/single.py. store/ has the store's memory, read/ answers queries and exports, upload/
brings batches to the device, launch/ compiles and launches the sources in kernels/.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from ...batch.columns import MAX_OPERATIONS, Columns
from ...cuda import driver
from ...pma.counters import Stats
from ..defaults import Defaults
from ..overlapping import ONE_LAUNCH_ROWS
from ..values import BOTH, Array, Committed, Costs, Unread
from .read.ages import Ages
from .read.hops import Hops
from .read.neighbors import Neighbors
from .read.queries import Queries
from .read.reader import Reader
from .read.snapshot import Snapshots
from .store.segments import Segments
from .store.shapes import Shapes
from .store.work import Work
from .streams import Context
from .update.changes import Changes
from .update.fused import FusedPath
from .update.located import Located
from .update.single import SingleOperationPath
from .update.stepwise import StepwisePath
from .upload import staging
from .upload.staged_batch import StagedBatch
from .upload.uploader import Uploader

KEPT_BYTES = 1 << 30  # buffers for batches of some millions


class CudaBackend(Defaults):
    """See lpma.backend.protocol. One instance per store; not thread-safe.

    It consists of parts, which know each other by their constructors alone. Most of what the seam
    asks for is a method of one of them, under the same name."""

    name = "cuda"
    overlaps = True
    validates = True  # rows of unchecked columns, while they are sorted
    costs = Costs(leaf=10.0, window=2.0, rebuild=1.2, fresh=3e7, evened=1 << 22)  # on an H200
    way_out = (
        "share the graph out over several, or use device='cpu'; a device with more memory does not "
        "help"
    )

    def __init__(self, context: Context, upload: Uploader) -> None:
        """context, upload: shared by the stores of a graph."""
        self.context, self.upload = context, upload
        with context:
            self.work = work = Work()
        self.shapes = shapes = Shapes(context, work)
        self.most_levels, self.empty, self.build = shapes.most_levels, shapes.empty, shapes.build
        self.expand, self.shrink = shapes.expand, shapes.shrink
        self.parted_from, self.even_out = shapes.parted_from, shapes.even_out

        self._reader = reader = Reader(context)
        queries, neighbors = Queries(reader), Neighbors(reader)
        self.find_edges, self.largest_vertex = queries.find_edges, queries.largest_vertex
        self.has_in_edges, self.scan_targets = queries.has_in_edges, queries.scan_targets
        self.slots, self.copy_slots = queries.slots, queries.copy_slots
        self.host_memory = queries.host_memory
        self.neighbors, self.neighbors_from = neighbors.neighbors, neighbors.neighbors_from
        self.count_neighbors = neighbors.count_neighbors
        self.reach = Hops(neighbors).reach
        ages, snapshots = Ages(reader), Snapshots(reader)
        self.older, self.since = ages.older, ages.since
        self.sampled_times, self.any_older = ages.sampled_times, ages.any_older
        self.csr_rows, self.csr_columns = snapshots.csr_rows, snapshots.csr_columns
        self.csr_view, self.taker = snapshots.csr_view, snapshots.taker

        changes = Changes(context)
        steps = StepwisePath(shapes, work, upload, reader, changes)
        self.sort_beside, self.asked = steps.sort_beside, steps.asked
        self.key_rows, self.locate, self.place_on = steps.key_rows, steps.locate, steps.place_on
        self.plan, self.rollback, self.reserve = steps.plan, steps.rollback, steps.reserve
        self.rebuild, self.commit = steps.rebuild, steps.commit
        self.fused = fused = FusedPath(context, shapes, work, upload, changes, self.costs)
        self.launch = fused.launch
        self.await_good, self.outcome, self.count = fused.await_good, fused.outcome, fused.count
        single = SingleOperationPath(shapes, work, reader, neighbors)
        self.find_edge, self.find_neighbors = single.find_edge, single.find_neighbors
        self.count_neighbors_of, self.update_one = single.count_neighbors_of, single.update_one

    def _set_written(self, value: bool) -> None:
        self.work.written = value

    written = property(attrgetter("work.written"), _set_written)
    """See lpma.backend.protocol.Writing."""

    def wait(self) -> None:
        driver.await_stream(self.context.stream)

    # -- batches --------------------------------------------------------------------------------

    def stages_unvalidated(self, rows: int) -> bool:
        """Not while the kernels for it are being read."""
        return rows > 0 and (staging.compiled.ready or staging.compiled.is_ready())

    def stage(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> StagedBatch:
        """The columns on their way to the device."""
        return self.upload.send(columns, int(time[0]) if len(time) == 1 else 0)

    def apply_at_once(
        self, segments: Segments, columns: Columns, time: Array,
        weight_dtype: np.dtype[Any] | None, direction: int, strategy: str, most_cost: float,
        stats: Stats,
    ) -> Committed | Located | None:  # fmt: skip
        """A batch that the device refuses is only located; for one that is merged anyway, or too
        large, nothing is done."""
        rows = len(columns.src) * (2 if direction == BOTH else 1)
        if not 0 < rows <= MAX_OPERATIONS or most_cost < 0:
            return None
        launched = self.launch(segments, columns, time, rows, direction, strategy, most_cost)
        assert launched is not None, "it is behind none"
        done = self.outcome(launched)
        if isinstance(done, Committed) and rows > ONE_LAUNCH_ROWS:
            self._give_back(segments)
        if isinstance(done, Committed) and isinstance(done.changes, Unread):
            done.changes = done.changes.read(done.changes.number)
        return done

    def trim(self, segments: Segments, staged: StagedBatch) -> None:
        """Runs after what the store's stream has under way with the batch."""
        self._reader.beside = None
        self.upload.done(staged)
        self._give_back(segments)

    # -- memory ---------------------------------------------------------------------------------

    @property
    def buffer_bytes(self) -> int:
        return self.work.nbytes + self.upload.nbytes

    def _give_back(self, segments: Segments) -> None:
        """Release buffers that are large beside this store."""
        held = self.buffer_bytes
        if held > KEPT_BYTES and held > segments.nbytes // 4:
            self.work.release()

"""Which partition owns each vertex of a column, columns spread over their owners, and which updates
a partition may hold.

`lpma.sharding` is the specification: the hash of an id or a name, modulo the number of partitions.

Tricks: a division of 64 bits takes longer than the hash. So the hash's upper half is folded first,
h = high · (2^32 mod n) + low, which is below 2^49 for up to 2^16 partitions; its quotient by
floating point is at most one off. Owners are few, so rows are spread by counting, a column after
the other. Of a graph with names each name is hashed once, and its owner kept by the id that the
graph gave it.
"""

from __future__ import annotations

import numpy as np

from lpma.batch.columns import EXPIRE, REMOVE_VERTEX, Columns
from lpma.names import UNKNOWN, Names
from lpma.sharding import owners_of

from ..errors import RecordError
from ..types import Array, Partition

MAX_PARTITIONS = 1 << 16
NOWHERE, EVERYWHERE = np.uint32(2**32 - 2), np.uint32(2**32 - 1)  # in place of a partition


def owners_in(vertices: Array, partitions: int) -> Array:
    """uint32[n]: as `lpma.sharding.owners_of`. vertices: integers of any type, or names as objects.

    REQUIRES: 1 <= partitions <= MAX_PARTITIONS."""
    if vertices.dtype.kind not in "iu":
        return owners_of(vertices, partitions, np.uint32)
    if vertices.dtype != np.uint32:
        signed = vertices.dtype.kind == "i"
        vertices = vertices.astype(np.int64 if signed else np.uint64, copy=False).view(np.uint64)
    from .owner_kernels import own  # not above: Numba takes a third of a second to import

    owners = np.empty(len(vertices), np.uint32)
    own(np.ascontiguousarray(vertices), partitions, owners)
    return owners


class Spread:
    """Rows spread over partitions, those of a partition in their order.

    own: uint32[n], the partition of each row, or NOWHERE or EVERYWHERE. twins: the same of a second
    row that each row also makes, right behind it; None: it makes none. bounds: int64, where the
    rows of each partition begin, and the last one's end."""

    def __init__(self, own: Array, twins: Array | None, partitions: int) -> None:
        from .owner_kernels import count

        self._own = own
        self._twins = own[:0] if twins is None else twins
        self.bounds = np.zeros(partitions + 1, np.int64)
        count(self._own, self._twins, self.bounds)

    def moved(self, first: Array, second: Array) -> Array:
        """A column after the spread: first[i] where row i went, second[i] where its twin did. They
        have one type."""
        if first.dtype == object:
            numbers = np.arange(len(first))
            entries = self.moved(numbers, numbers + len(first))
            return np.concatenate((first, second))[entries] if len(self._twins) else first[entries]
        from .owner_kernels import move

        out = np.empty(int(self.bounds[-1]), first.dtype)
        bits = np.dtype(f"u{first.itemsize}")
        columns = (np.ascontiguousarray(column).view(bits) for column in (first, second))
        move(self._own, self._twins, self.bounds, *columns, out.view(bits))
        return out


class OwnersOfIds:
    """The owners of a graph's vertices, by their ids there."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._known = 0  # of the ids that have names
        self._of_names = np.zeros(1, np.uint32)

    def of(self, ids: Array, names: Names | None) -> Array:
        """uint32[n]. ids: uint32, of `names` if there are some; others have no meaning."""
        if names is None:
            return owners_in(ids, self.partitions)
        return self.table(names).take(ids, mode="clip")

    def table(self, names: Names) -> Array:
        """uint32, at least one: the owners of all names, by their ids."""
        from .owner_kernels import own_names

        first, count = self._known, len(names)
        if first < count:
            if count > len(self._of_names):
                longer = np.zeros(2 * count, np.uint32)
                longer[:first] = self._of_names[:first]
                self._of_names = longer
            own_names(*names.columns, first, count, self.partitions, self._of_names)
            self._known = count
        return self._of_names


def rows_everywhere(kinds: Array) -> Array:
    """bool[n]: the rows that lie in every partition: removals of vertices, and expiries."""
    everywhere: Array = (kinds == REMOVE_VERTEX) | (kinds == EXPIRE)
    return everywhere


class Ownership:
    """What each of so many partitions may hold: updates of the vertices that it owns.

    A shard applies whatever its partitions hold. A row that a plain producer put into another
    partition than its source vertex's would be kept where nobody looks for it, and be counted all
    the same. So each record is checked before its rows are buffered. A removal of a vertex belongs
    in every partition, and so do an expiry, and a deletion at a name that nobody gave: it does
    nothing. A removal or an expiry says here which partition it was read from, in its `dst`, which
    has no other meaning: `removals.py` needs it where a shard reads several."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._owners = OwnersOfIds(partitions)

    def owned(self, partition: Partition, batch: Columns, names: Names | None) -> Columns:
        """Updates of that partition as they are to be applied. names: of the ids in src; None: they
        are the vertices. Raises RecordError if a row belongs elsewhere."""
        owners = self._owners.of(batch.src, names)
        elsewhere = owners != partition.number
        if names is not None:
            elsewhere &= batch.src != UNKNOWN
        everywhere = rows_everywhere(batch.kind)
        elsewhere &= ~everywhere
        if elsewhere.any():
            row = int(elsewhere.argmax())
            ids: Array = batch.src[row : row + 1]
            (vertex,) = (ids if names is None else names.of(ids)).tolist()
            raise RecordError(
                f"row {row}: vertex {vertex!r:.80} belongs in partition {owners[row]} of "
                f"{partition.topic!r}, not in {partition.number}: write with "
                "ingest.PartitionedSink, or repair the topic with `lpma repartition`",
                "misplaced",
            )
        if not everywhere.any():
            return batch
        return batch.replace(dst=np.where(everywhere, np.uint32(partition.number), batch.dst))

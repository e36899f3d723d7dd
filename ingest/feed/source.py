"""A feed as the source of a pipeline: each version of the writer's graph is a batch of the copy's.

Idea: a copy is a pipeline like any other. Its journal, its checkpoints and its exactly-once effect
are those of `ingest/pipeline/`; what differs is how a record becomes operations, which is said
here, and where a batch ends: with the last part of a version (`types.Record.closes`). A version
becomes

    vertices that were removed   REMOVE_VERTEX, first: each takes its edges along, and those of them
                                 that are there afterwards are listed
    edges that are there         SET, with exactly this weight and time; a weight of 0, which SET
                                 takes for an edge that is gone, is 1 set and 1 taken away
    edges that are gone          DELETE
    vertices that were added     ADD_VERTEX
    and last                     DELETE of an edge that is not there, with the time of the last
                                 update, so that a version without changes is one, too, and the
                                 copy's `time` is the writer's

Invariants:
1. Every version is applied whole or not at all, and none is left out: a run's versions rise by one.
   What is repeated is passed over.
2. A copy follows one run. Where another begins it stops: nobody knows what lies between.
3. The ids of names are the writer's: a copy has given the same names ids in the same order.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lpma import Change
from lpma.batch.columns import Columns, Kind
from lpma.cpu import columns as host_columns
from lpma.names import UNKNOWN, column_of

from ..errors import AwayError, IdentityError, OffsetError, RecordError, SourceError
from ..formats.changes import EdgeChanges, decode_changes, decode_changes_line
from ..results.sinks import newest_in, what_is
from ..sources.base import FILES, Identity, Log, Source, check_written
from ..types import Array, Partition, Polled, Record

if TYPE_CHECKING:
    from lpma.names import Names

LOOK_S = 0.005  # at a file that grows
READ_BYTES = 4 << 20  # of a file at once
PATIENCE_S = 10.0  # of one look for a record
AGAIN = (
    "start again from a newer snapshot of the graph that the feed is of, with a new checkpoint: "
    "lpma replica FEED --from SNAPSHOT -c NEW"
)
_KINDS = np.array(
    [Kind.SET, Kind.DELETE, Kind.ADD_VERTEX, Kind.REMOVE_VERTEX, Kind.SET], np.uint8
)  # by Change


class FeedSource(Source):
    """The feed that `log` holds, which reads its topic alone. Raises SourceError if it is none."""

    cuts_batches = True

    def __init__(self, log: Log | FeedFile) -> None:
        places = [*log.positions()]
        if len(places) != 1:
            read = ", ".join(f"{place.topic}/{place.number}" for place in places) or "nothing"
            raise SourceError(
                f"a feed lies in partition 0 of one topic, and {read} is read here: open the log "
                "with that topic alone, and partitions={topic: [0]}"
            )
        self.place: Partition = places[0]
        self.topics = (self.place.topic,)
        self.can_wake = log.can_wake
        self._decode = decode_changes_line if isinstance(log, FeedFile) else decode_changes
        self.newest: EdgeChanges = self._newest_of(log)
        self.run = self.newest.run  # that is followed
        self.why_read_only = (
            f"this is a replica, which follows {log!r}: send updates to the pipeline that "
            "publishes that feed"
        )
        self._log = log
        self._last: EdgeChanges | None = None  # that was read; None: none since it was set
        self._moved = Moved(None)  # by the version that is read

    def __repr__(self) -> str:
        return f"FeedSource({self._log!r})"

    def _newest_of(self, log: Log | FeedFile) -> EdgeChanges:
        before = log.positions()
        found = newest_in(log, self.place, self._decode)  # type: ignore[arg-type]
        if found is None:
            log.seek({self.place: log.first_offsets()[self.place]})
            for record in log.poll(1, 0.0 if log.at_end() else 1.0):
                raise SourceError(
                    f"{self.place.topic}: holds no feed: its first record is "
                    f"{what_is(record.value)}: name the topic or the file in which "  # type: ignore[arg-type]
                    "a pipeline writes its feed"
                )
            raise AwayError(
                f"{self.place.topic}: holds no feed yet: a pipeline writes one with changes=…, or "
                "`lpma ingest --changes-topic`; start again once it runs, as a supervisor does"
            )
        log.seek(before)
        assert isinstance(found, EdgeChanges)
        return found

    # Records ---------------------------------------------------------------------------------

    def decoder(self, value: bytes) -> Record:
        """What one record does to a copy."""
        try:
            part = self._decode(value)
        except RecordError as error:
            raise self._no_part(value, error) from None
        last = self._last
        if part.run != self.run:
            raise IdentityError(
                f"{self.place.topic}: the feed began anew at version {part.version:,}, as it does "
                f"where its writer lost what it had told: {AGAIN}"
            )
        if last is not None:
            if part.place <= last.place:
                return Record(Columns.validated([], [], [], None, None))
            here = (last.version + 1, 0) if last.is_last else (last.version, last.part + 1)
            if part.place != here:
                raise SourceError(
                    f"{self.place.topic}: version {here[0]:,} is not there, but {part.version:,} "
                    f"is: {AGAIN}"
                )
        if part.part == 0 or last is None:
            self._moved = Moved(last)
        moved, self._last = self._moved, part

        def updates(names: Names | None) -> Columns:
            ids = _ids_of(part, names)
            moved.add(part, ids)
            return updates_of(part, ids)

        return Record(_placeholder(part), closes=part.is_last, resolve=updates)

    def _no_part(self, value: bytes, error: RecordError) -> SourceError:
        """What to raise of a record that is no part of a feed."""
        if isinstance(self._log, FeedFile):
            return SourceError(
                f"{self._log.path}: line {self._log.number_of(value):,} is no part of a feed: "
                f"{error}: if something else wrote that line, remove it; else {AGAIN}"
            )
        return SourceError(f"{self.place.topic}: a record is no part of a feed: {error}")

    # Finding a version -----------------------------------------------------------------------

    def find(self, version: int) -> tuple[EdgeChanges, int] | None:
        """The last part of a version of the run that is followed, and the offset behind it; None if
        the feed holds neither it nor an older one. The positions move. Raises SourceError."""
        low, high = self._log.first_offsets()[self.place], self._log.end_offsets()[self.place]
        while low < high:
            middle = (low + high) // 2
            found = self._first_from(middle)
            if found is None or (found[0].run == self.run and found[0].version >= version):
                high = middle
            else:
                low = found[1]
        found = self._first_from(low)
        if found is None or found[0].version != version:
            return None
        while not found[0].is_last:
            found = self._first_from(found[1])
            assert found is not None, "a version is whole"
        return found

    def _first_from(self, offset: int) -> tuple[EdgeChanges, int] | None:
        """The first part at an offset or behind it, and the offset behind that."""
        self._log.seek({self.place: offset})
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            for record in self._log.poll(1, 0.0 if self._log.at_end() else 1.0):
                try:
                    return self._decode(record.value), record.offset + 1  # type: ignore[arg-type]
                except RecordError as error:
                    raise self._no_part(record.value, error) from None  # type: ignore[arg-type]
            if self._log.at_end():
                return None
        raise AwayError(f"{self.place.topic}: nothing answers: try again")

    # As the log ------------------------------------------------------------------------------

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        try:
            return self._log.poll(max_records, timeout)
        except OffsetError as error:
            raise OffsetError(
                f"{error}. What the copy has still to read is gone: {AGAIN}"
            ) from None

    def seek(self, positions: Mapping[Partition, int]) -> None:
        try:
            self._log.seek(positions)
        except OffsetError as error:
            raise OffsetError(
                f"{error}. What the copy has still to read is gone: {AGAIN}"
            ) from None
        self._last = None

    def positions(self) -> dict[Partition, int]:
        return self._log.positions()

    def at_end(self) -> bool:
        return self._log.at_end()

    def identity(self) -> Identity:
        """That of the log, and the run of the feed."""
        found = self._log.identity()
        topic = self.place.topic
        return Identity(found.cluster, {topic: f"{found.topics.get(topic, '')}/{self.run}"})

    def end_offsets(self) -> dict[Partition, int]:
        return self._log.end_offsets()

    def known_ends(self) -> dict[Partition, int]:
        return self._log.known_ends()

    def first_offsets(self) -> dict[Partition, int]:
        return self._log.first_offsets()

    def records_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, Polled] | None:
        return self._log.records_at(offsets)

    def poll_one(self, partition: Partition, max_records: int) -> list[Polled] | None:
        return self._log.poll_one(partition, max_records)

    def trouble(self) -> str | None:
        return self._log.trouble()

    def wake(self) -> None:
        self._log.wake()


def follows_feed(identity: Identity) -> bool:
    """Whether a stream that reads this is a copy, and what it reads is a feed."""
    return any("/" in each for each in identity.topics.values())


def _placeholder(part: EdgeChanges) -> Columns:
    """Columns of the length that a part's updates have: they are made when names are known."""
    rows = len(_rows(part)[0]) + part.is_last
    none = np.zeros(rows, np.uint32)
    return Columns(np.full(rows, Kind.DELETE, np.uint8), none, none, None, None, checked=True)


def _rows(part: EdgeChanges) -> tuple[Array, Array]:
    """(which row of the part each update is of, in order; bool: whether it takes 1 away again)."""
    at = np.arange(part.rows)
    if part.weight is None or not part.rows:
        return at, np.zeros(part.rows, np.bool_)
    zero = (_KINDS[part.change] == Kind.SET) & (part.weight == 0)
    if not zero.any():
        return at, np.zeros(part.rows, np.bool_)
    which = np.repeat(at, 1 + zero)
    again = np.zeros(len(which), np.bool_)
    again[1:] = which[1:] == which[:-1]
    return which, again


class Moved:
    """What the parts of one version make of the number of edges and of the digest, held against
    what the feed says of both. before: the last part of the version before; None: not known."""

    def __init__(self, before: EdgeChanges | None) -> None:
        self._before = before
        self._by_part: dict[int, tuple[int, int]] = {}

    def add(self, part: EdgeChanges, ids: tuple[Array, Array]) -> None:
        """Count a part, whose ends have these ids. Raises SourceError after the last one, if the
        version does not lead to what it says."""
        change, before = part.change, self._before
        came, went = (int(np.count_nonzero(change == c)) for c in (Change.INSERTED, Change.REMOVED))
        self._by_part[part.part] = came - went, host_columns.hash_moved(change, *ids)
        if before is None or not part.is_last:
            return
        edges, digest = map(sum, zip(*self._by_part.values(), strict=True))
        if (before.edges + edges, (before.digest + digest) % 2**64) != (part.edges, part.digest):
            raise SourceError(
                f"version {part.version:,}: its changes do not lead to the edges that it is said "
                f"to have: was a record altered? {AGAIN}"
            )


def updates_of(part: EdgeChanges, ids: tuple[Array, Array]) -> Columns:
    """The updates of a part, whose ends have these ids."""
    which, again = _rows(part)
    src, dst = ids
    kind = _KINDS[part.change][which]
    kind[again] = Kind.INSERT
    time = np.zeros(part.rows, np.int64) if part.time is None else part.time
    columns = [kind, src[which], dst[which], time[which]]
    weight = None
    if part.weight is not None:
        weight = part.weight[which].copy()
        weight[weight == 0] = 1
        weight[again] = -1
    if part.is_last:
        last = (Kind.DELETE, part.absent, part.absent, part.updated)
        columns = [np.append(c, c.dtype.type(each)) for c, each in zip(columns, last, strict=True)]
        if weight is not None:
            weight = np.append(weight, weight.dtype.type(0))
    kind, src, dst, time = columns
    return Columns.validated(kind, src, dst, weight, time)


def _ids_of(part: EdgeChanges, names: Names | None) -> tuple[Array, Array]:
    """Of the ends. names: of the copy; those that the part brings get theirs. Raises IdentityError
    if they are others there."""
    if names is None:
        return part.src.astype(np.uint32), part.dst.astype(np.uint32)
    if part.names is not None:
        given = names.assign(column_of(part.names, "names"))
        if not np.array_equal(given, np.arange(part.first, part.first + len(given))):
            raise IdentityError(
                f"version {part.version:,}: the copy knows its names by other ids: is it of "
                f"another graph? {AGAIN}"
            )
    if not part.rows:
        return part.src.astype(np.uint32), part.dst.astype(np.uint32)
    src, dst = (names.look_up(column_of(c, "names")) for c in (part.src, part.dst))
    if (src == UNKNOWN).any() or (dst == UNKNOWN).any():
        raise IdentityError(
            f"version {part.version:,}: a vertex has a name that the copy does not know: is it of "
            f"another graph? {AGAIN}"
        )
    return src, dst


class FeedFile(Source):
    """A feed in a file of JSON lines that grows. An offset is the place of a line's end in the
    file, and a line without one is not there yet. Raises SourceError if it cannot be read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self._file = open(self.path, "rb")  # noqa: SIM115 - closed by close
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be read: {error}") from error
        self.place = Partition(os.path.basename(self.path), 0)
        self.topics = (self.place.topic,)
        self._next = 0  # where reading goes on: behind the end of a line, or within one

    def __repr__(self) -> str:
        return f"FeedFile({self.path!r})"

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        ends = time.monotonic() + timeout
        while not (polled := self._read(max_records)):
            left = ends - time.monotonic()
            if left <= 0:
                return []
            time.sleep(min(LOOK_S, left))
        return polled

    def _read(self, most: int) -> list[Polled]:
        check_written(self.place, self._next, self._size())
        found: list[Polled] = []
        start = self._line_at(self._next)
        size = READ_BYTES
        while not found:
            self._file.seek(start)
            data = self._file.read(size)
            at = 0
            while len(found) < most and (end := data.find(b"\n", at)) >= 0:
                found.append(Polled(self.place, start + end, data[at:end]))
                at = end + 1
            if len(data) < size:
                break
            size *= 2  # a line that is longer
        if found:
            self._next = found[-1].offset + 1
        return found

    def number_of(self, line: bytes) -> int:
        """Which line this is, from 1 on. REQUIRES: it is there."""
        self._file.seek(0)
        return next(at for at, each in enumerate(self._file, 1) if each.rstrip(b"\n") == line)

    def _line_at(self, place: int) -> int:
        """Where the line begins that holds this place, or that begins there."""
        step = 1 << 12
        while place:
            start = max(0, place - step)
            self._file.seek(start)
            end = self._file.read(place - start).rfind(b"\n")
            if end >= 0:
                return start + end + 1
            if not start:
                return 0
            step *= 8
        return 0

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def seek(self, positions: Mapping[Partition, int]) -> None:
        place = positions.get(self.place, self._next)
        check_written(self.place, place, self._size())
        self._next = place

    def positions(self) -> dict[Partition, int]:
        return {self.place: self._next}

    def at_end(self) -> bool:
        return self._next >= self.end_offsets()[self.place]

    def identity(self) -> Identity:
        return Identity(FILES, {self.place.topic: "feed"})

    def first_offsets(self) -> dict[Partition, int]:
        return {self.place: 0}

    def end_offsets(self) -> dict[Partition, int]:
        """Behind the last line that is whole."""
        return {self.place: self._line_at(self._size())}

    def known_ends(self) -> dict[Partition, int]:
        return {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

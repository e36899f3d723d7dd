"""How a pipeline begins: afresh, or where a checkpoint was taken.

`Pipeline.resume` and a dry run that goes on from a checkpoint share `stand_at`: the
source must be the one that was read, still hold what was read last, and stand where the checkpoint
was taken.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import lpma

from ..errors import CheckpointError, OffsetError, PipelineError, RecordError
from ..formats.json import JsonFields
from ..formats.records import decode_record
from ..results.topics import check_results_topic
from ..settings import Settings
from ..sources.base import Inspectable, ReadsAhead, Source
from ..sources.marks import check_marks
from ..state.checkpoint import State
from ..state.directory import CheckpointDirectory, has_checkpoint
from ..state.journal import Chunk, Entry
from ..types import Partition, Polled, Position, StreamGraph

if TYPE_CHECKING:
    from lpma.names import Names


POLL_RECORDS = 500
WAIT_S = 1.0  # for the first record of a poll of a replay


def fresh_state(
    source: Source,
    graph: StreamGraph,
    settings: Settings,
    positions: Mapping[Partition, Position] | None = None,
) -> State:
    """The state of a stream that begins with this graph, at these positions; None: where the source
    stands. Raises PipelineError if vertices go by names and the graph has vertices already, and as
    `check_lateness` and `begin_at` do."""
    if settings.names and names_in(graph) is None and graph.num_rows:
        raise PipelineError(
            "the graph has vertices already, and no names for them: make it with "
            "lpma.Graph(names=True)"
        )
    check_lateness(settings)
    begun = begin_at(source, settings, positions or {})
    return State(
        source.identity(), begun, version=graph.version, record_settings=settings.record_settings()
    )


def check_lateness(settings: Settings) -> None:
    """Raise PipelineError if max_lateness would have no effect. For a beginning alone: what an
    older checkpoint says is taken."""
    if settings.max_lateness and settings.late == "apply":
        raise PipelineError(
            "max_lateness says what is late: say what becomes of it, too, as late='dead-letter' or "
            "late='reject'"
        )


def begin_at(
    source: Source, settings: Settings, positions: Mapping[Partition, Position]
) -> dict[Partition, Position]:
    """Let `source` stand at these positions; they are returned. Raises PipelineError if one lies
    within a record that has fewer rows, or where some may be late: which rows those are depends on
    what was read before. OffsetError if an offset is gone or was never written."""
    found = {partition: Position(*place) for partition, place in positions.items()}
    within = {partition: place for partition, place in found.items() if place.row}
    for partition, place in within.items():
        if settings.late != "apply" or place.row < 0:
            raise PipelineError(
                f"{_place(partition, place)}: rows of a record that are done are from 1 on, and "
                "for late='apply' only: begin where a whole record begins"
            )
    if found:
        source.seek({partition: place.offset for partition, place in found.items()})
    if within and isinstance(source, Inspectable):
        there = source.records_at({partition: place.offset for partition, place in within.items()})
        for partition, place in within.items():
            has = _rows_of(there.get(partition), settings)
            if place.row >= has:
                raise PipelineError(
                    f"{_place(partition, place)}: the record there has {has} rows: give the offset "
                    f"{place.offset + 1} if all of them are done, fewer rows if not"
                )
    return found


def _place(partition: Partition, place: Position) -> str:
    return f"{partition.topic}:{partition.number}={place.offset}+{place.row}"


def _rows_of(polled: Polled | None, settings: Settings) -> int:
    """How many rows a record has; none if it is refused or not there."""
    json = settings.records if isinstance(settings.records, JsonFields) else None
    if polled is None or not isinstance(polled.value, bytes):
        return 0
    try:
        return len(decode_record(polled.value, names=settings.names, json=json).batch)
    except RecordError:
        return 0


def opened(state: State, source: Source) -> State:
    """`state` for a new writer: with every partition that the source reads, and the next epoch."""
    start = {p: Position(offset) for p, offset in source.positions().items()}
    return replace(
        state,
        identity=source.identity(),
        positions=start | state.positions,
        epoch=state.epoch + 1,
    )


def serving(state: State, settings: Settings) -> State:
    """`state` with what the settings say of keeping checkpoints and of asking queries."""
    keep = settings.keep_checkpoints
    return replace(
        state,
        keep_checkpoints=state.keep_checkpoints if keep is None else keep,
        reply_topics=tuple(settings.reply_topics),
        max_hops=settings.max_hops,
    )


def asking_as(settings: Settings, state: State) -> Settings:
    """The settings with what decided then which queries were asked, as far as it is known."""
    topics, most = state.reply_topics, state.max_hops
    return replace(
        settings,
        reply_topics=settings.reply_topics if topics is None else topics,
        max_hops=settings.max_hops if most is None else most,
    )


def stand_at(
    state: State, source: Source, given: Mapping[str, Any], accept_gap: bool
) -> tuple[Settings, list[Gap]]:
    """Let `source` stand where `state` was taken. Returns the settings to go on with, those `given`
    with the record settings of the checkpoint, and the gaps, if they are accepted.

    Raises PipelineError if a setting cannot change any more, IdentityError if this is another
    source, RewrittenError if it holds other records than were read, OffsetError if records that are
    needed are gone."""
    check_source(source)
    settings = Settings(**{**given, **state.record_settings.kept(given)})
    state.identity.check(source.identity())
    positions = {partition: position.offset for partition, position in state.positions.items()}
    gaps = seek_to(source, positions, accept_gap)
    check_marks(source, state.marks)
    return settings, gaps


def new_directory(path: str | os.PathLike[str]) -> CheckpointDirectory:
    """The directory for a stream that begins, with its journal. Raises CheckpointError if it
    holds a checkpoint."""
    directory = CheckpointDirectory(path)
    try:
        if directory.numbers():
            raise CheckpointError(
                f"{path}: holds a checkpoint already: Pipeline.resume goes on from it, another "
                "directory starts afresh"
            )
        directory.begin_journal()
    except BaseException:
        directory.close()
        raise
    return directory


def kept_directory(path: str | os.PathLike[str]) -> CheckpointDirectory:
    """The directory of a stream that goes on. Raises CheckpointError if it holds no checkpoint,
    good or not; then no directory is made."""
    if not has_checkpoint(path):
        raise CheckpointError(f"{path}: holds no checkpoint: start with Pipeline(…)")
    return CheckpointDirectory(path)


def check_until(until: object) -> None:
    """Raise PipelineError unless `Pipeline.run` knows it: any other text would mean forever."""
    is_number = isinstance(until, int) and not isinstance(until, bool) and until >= 0
    if not (is_number or until is None or until == "end" or callable(until)):
        raise PipelineError(
            f"until is {until!r}: expected a number of operations, at least 0, 'end', a function "
            "of the pipeline, or None, which is forever"
        )


def check_source(source: object) -> None:
    """Raise PipelineError unless this may be a source: whatever its class, it has what each has."""
    if not all(hasattr(source, name) for name in ("poll", "seek", "identity")):
        raise PipelineError(
            f"source is of type {type(source).__name__}: expected a source, as "
            "ingest.SqliteLog(path) or ingest.FileSource(path)"
        )


def check_graph(graph: object) -> None:
    """As `check_source`, of a graph."""
    if not all(hasattr(graph, name) for name in ("apply", "version")):
        found = f"{type(graph).__module__}.{type(graph).__qualname__}".removeprefix("builtins.")
        raise PipelineError(f"graph is of type {found}: expected one of lpma, as lpma.Graph()")


def check_fit(source: Source, graph: StreamGraph, settings: Settings) -> None:
    """Raise PipelineError if these do not go together: the source reads names and the pipeline
    ids, it gives both directions of what is one edge of the graph, there is a window and the graph
    says that it keeps no times, or that it is on another device, or results would go to a topic
    that has another use. Or one of them is something else altogether."""
    check_source(source)
    check_graph(graph)
    check_results_topic(source, settings)
    refuse_named(source, settings.names)
    refuse_mirrored(source, graph.directed)
    if settings.window is None and settings.window_time != "event":
        raise PipelineError("window_time says what moves a window: give the window, too")
    if settings.window is not None and not getattr(graph, "has_times", True):
        raise PipelineError(
            "a window needs the edges' times, and this graph keeps none: make it with times=True"
        )
    device = settings.device
    there = getattr(graph, "device", device)
    if device not in ("auto", there, there.partition(":")[0]):
        raise PipelineError(
            f"device is {device!r}, but the graph is on {there}: make the graph there, as "
            f"lpma.Graph(device={device!r}), or leave device out"
        )


def refuse_named(source: Source, names: bool) -> None:
    """Raise PipelineError if the source gives names, and what takes them does not say `names`."""
    if getattr(source, "names", False) and not names:
        raise PipelineError(
            "the file's vertices go by names: say names=True here as well, or have the source "
            "read them as ids, with names=False"
        )


def refuse_mirrored(source: Source, directed: bool) -> None:
    """Raise PipelineError if the source gives both directions of an undirected file's edges, and
    the graph is undirected, too: it would add them up."""
    if getattr(source, "mirrors", False) and not directed:
        raise PipelineError(
            "the file says that its graph is undirected, and is read with each edge in both "
            "directions, which an undirected graph would add up: read it with mirror=False"
        )


def names_in(graph: StreamGraph) -> Names | None:
    """The graph's own dictionary, if it has one."""
    found: Names | None = getattr(graph, "names", None)
    return found


def fitting(settings: Settings, graph: StreamGraph) -> Settings:
    """The settings for this graph: one that has names reads names."""
    return settings if names_in(graph) is None else replace(settings, names=True)


def vertices_of(settings: Settings, graph: StreamGraph, path: Path | None = None) -> Names | None:
    """What the vertices go by: the graph's own dictionary. A graph without one takes that in the
    file, or an empty one. None if they go by ids. Imported here: only names need compiled code."""
    if not settings.names or names_in(graph) is not None:
        return names_in(graph)
    from lpma.names import Names

    names = Names() if path is None else Names.load(path)
    if isinstance(graph, lpma.Graph):
        graph.take_names(names)  # an empty one, or one whose checkpoint has them in a file apart
    return names


def load_graph(path: Path, device: str) -> StreamGraph:
    """The graph that `lpma.Graph.save` wrote, on this device."""
    graph: StreamGraph = lpma.Graph.load(path, device)
    return graph


# Gaps ---------------------------------------------------------------------------------------


class Gap(NamedTuple):
    """Offsets start … stop − 1 of a partition, which are gone."""

    partition: Partition
    start: int
    stop: int

    def __str__(self) -> str:
        topic, number = self.partition
        count = self.stop - self.start
        return f"{topic}/{number}: {count:,} records are gone, {self.start} … {self.stop - 1}"

    def detail(self) -> dict[str, Any]:
        topic, number = self.partition
        place = {"topic": topic, "partition": number, "from": self.start, "to": self.stop - 1}
        return {**place, "records": self.stop - self.start}


def seek_to(source: Source, positions: Mapping[Partition, int], accept_gap: bool) -> list[Gap]:
    """Let the source stand at these offsets; if gaps are accepted, at the first record still there.
    Returns the gaps. Raises OffsetError if anything else is wrong with an offset."""
    if not accept_gap:
        source.seek(positions)
        return []
    while True:
        firsts = source.first_offsets() if isinstance(source, Inspectable) else {}
        gaps = [Gap(p, at, firsts[p]) for p, at in positions.items() if at < firsts.get(p, at)]
        try:
            source.seek({**positions, **{gap.partition: gap.stop for gap in gaps}})
        except OffsetError:
            # Retention may have dropped more since; if not, it is not the cause.
            if not isinstance(source, Inspectable) or source.first_offsets() == firsts:
                raise
        else:
            return gaps


def exact(entries: Iterable[Entry], gaps: Iterable[Gap]) -> Iterator[Entry]:
    """The entries that can be replayed as they were: all before the first that names lost
    records."""
    firsts = {gap.partition: gap.stop for gap in gaps}
    for entry in entries:
        if isinstance(entry, Chunk) and entry.first < firsts.get(entry.partition, 0):
            return
        yield entry


class Rereader:
    """REQUIRES: `source` stands at the offsets of the checkpoint the journal belongs to."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._held: dict[Partition, deque[Polled]] = {}

    def read(self, chunk: Chunk) -> list[Polled]:
        """The records chunk.first … chunk.last. Raises OffsetError if they are gone."""
        taken: list[Polled] = []
        while not taken or taken[-1].last < chunk.last:
            taken.append(self._next(chunk))
        return taken

    def _next(self, chunk: Chunk) -> Polled:
        held = self._held.setdefault(chunk.partition, deque())
        if not held and isinstance(self._source, ReadsAhead):
            held.extend(self._source.poll_one(chunk.partition, POLL_RECORDS))
            if not held:
                raise _gone(chunk)
        while not held:
            if self._source.at_end():
                raise _gone(chunk)
            # Nothing within the wait does not mean the end: the rest of a log may be hidden, as the
            # end of a transaction is, or its broker may be away; then the source decides how long
            # to wait.
            for record in self._source.poll(POLL_RECORDS, WAIT_S):
                self._held.setdefault(record.partition, deque()).append(record)
        record = held.popleft()
        if not chunk.first <= record.offset <= chunk.last:
            raise _gone(chunk)
        if record.last > chunk.last:
            record, rest = record.split(chunk.last + 1)
            held.appendleft(rest)
        return record


def _gone(chunk: Chunk) -> OffsetError:
    topic, number = chunk.partition
    return OffsetError(
        f"{topic}/{number}: records {chunk.first} … {chunk.last} were read before the crash and "
        "are not there now: restore the log, or start a new checkpoint"
    )

"""How a pipeline begins, and how it goes on after a crash: open, verify, seek, replay.

    begin     a stream that starts here: source, graph and settings must fit together
    reopen    one that goes on from the newest good checkpoint: the source must be the one that was
              read, still hold what was read last, and is set to where the checkpoint was taken
    replayed  the batches of the first run again, as the journal says they were buffered and cut

A journal names records of partitions that may come back in another order than the first time. A
source that can be read by partition is read so. From any other, what comes too early is held until
the journal asks for it: at most what was buffered since the checkpoint.

Losses that may be accepted:

*Records gone from the log.* Retention drops records from the front of a partition, and nothing
brings them back. Then a resume does exactly what can still be done, and counts the rest:

    1. the journal is replayed up to the first record that is gone: the same batches, versions and
       times as before the crash
    2. in each partition, the gap reaches from where that ended to the first record still there
    3. the stream goes on after it. What the journal says of later records no longer counts: they
       are read again under new stamps, and replies to queries among them may differ

Only retention is accepted. A position beyond the end, or other records than those that were read,
remain errors.

*A damaged journal.* The log is read again from where the replay ended, under new stamps.

What was accepted is kept in the state, and a checkpoint is taken at once, so that no later resume
meets it again.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lpma
from lpma.batch.columns import Columns

from ..errors import CheckpointError, OffsetError, PipelineError, RecordError
from ..events import log_event
from ..fields import Records, remembers_rows, shares_sums
from ..formats.records import decode_record
from ..registry.client import checked_registry
from ..registry.schemas import Schemas
from ..results.publisher import Publisher
from ..results.sinks import check_results_topic
from ..settings import Settings
from ..sources.base import Source
from ..sources.fingerprints import check_fingerprints
from ..state.checkpoint import GRAPH, VERTICES, Accepted, State
from ..state.directory import CheckpointDirectory, directory_path, has_checkpoint
from ..state.journal import Chunk, Entry
from ..state.journal_reader import Segment
from ..state.stream_state import Gap, StreamState
from ..state.table_rows import ROWS, TableRows
from ..timers import now_ms
from ..types import NO_UPDATES, Partition, Polled, Position, StreamGraph
from .batching import StreamBatch
from .intake import Intake
from .record_decoder import Admission, Bounds
from .windows import width_of

if TYPE_CHECKING:
    from lpma.names import Names

POLL_RECORDS = 500
WAIT_S = 1.0  # for the first record of a poll of a replay


# Beginning -----------------------------------------------------------------------------------


def begin(
    source: Source,
    graph: StreamGraph,
    checkpoint: str | os.PathLike[str] | None,
    settings: Settings,
    positions: Mapping[Partition, Position] | None,
) -> StreamState:
    """A stream that begins with this graph, at these positions; None: as `begin_at`. Raises
    PipelineError if these do not go together, CheckpointError if the directory holds a checkpoint
    already."""
    own = settings if names_in(graph) is None else replace(settings, names=True)
    path = None if checkpoint is None else directory_path(checkpoint)
    check_fit(source, graph, own)  # before anything is taken
    if own.names and names_in(graph) is None and graph.num_rows:
        raise PipelineError(
            "the graph has vertices already, and no names for them: make it with "
            "lpma.Graph(names=True)"
        )
    check_lateness(own)
    begun = begin_at(source, own, positions or {})
    state = State(
        source.identity(), begun, version=graph.version, record_settings=own.record_settings()
    )
    directory = None if path is None else CheckpointDirectory(path)
    try:
        if directory is not None:
            if directory.numbers():
                raise CheckpointError(
                    f"{path}: holds a checkpoint already: Pipeline.resume goes on from it, another "
                    "directory starts afresh"
                )
            directory.begin_journal()
        vertices = vertices_of(own, graph)
        return StreamState(
            source, graph, own, vertices, opened(state, source), rows_of(own, graph), directory,
            schemas=schemas_of(own, None if directory is None else directory.path),
        )  # fmt: skip
    except BaseException:
        if directory is not None:
            directory.close()
        raise


def reopen(
    checkpoint: str | os.PathLike[str],
    source: Source,
    load: Callable[[Path], StreamGraph],
    settings: Mapping[str, Any],
    *,
    accept_gap: bool,
    accept_journal_loss: bool,
) -> StreamState:
    """A stream at its newest good checkpoint, whose graph `load` reads; the journal since is not
    read yet. Raises as `Pipeline.resume`, but for the journal."""
    if not has_checkpoint(checkpoint):
        raise CheckpointError(f"{checkpoint}: holds no checkpoint: start with Pipeline(…)")
    directory = CheckpointDirectory(checkpoint)
    try:
        found, graph = directory.newest(lambda checkpoint: load(checkpoint.path / GRAPH))
        own, gaps = verify_and_seek(found.state, source, settings, accept_gap)
        vertices = vertices_of(own, graph, found.path / VERTICES)
        check_fit(source, graph, own)
        state = opened(found.state, source)
        rows = rows_of(own, graph, found.path / ROWS)
        return StreamState(
            source, graph, own, vertices, state, rows, directory, found, gaps, accept_journal_loss,
            schemas_of(own, directory.path),
        )  # fmt: skip
    except BaseException:
        directory.close()
        raise


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
    """Let `source` stand at these positions, which are returned, and elsewhere at the earliest
    record of a log. Raises PipelineError if one lies within a record that has fewer rows, or where
    some may be late: which rows those are depends on what was read before. OffsetError if an offset
    is gone or was never written."""
    try:
        found = {partition: Position(*place) for partition, place in positions.items()}
    except (AttributeError, TypeError):
        raise PipelineError(
            f"positions is {positions!r}: expected (offset, rows done) by Partition, as "
            "`positions()` of a pipeline has them"
        ) from None
    within = {partition: place for partition, place in found.items() if place.row}
    for partition, place in within.items():
        if settings.late != "apply" or place.row < 0:
            raise PipelineError(
                f"{_place(partition, place)}: rows of a record that are done are from 1 on, and "
                "for late='apply' only: begin where a whole record begins"
            )
    offsets = {} if source.bounded else source.first_offsets()
    offsets |= {partition: place.offset for partition, place in found.items()}
    if offsets:
        source.seek(offsets)
    there = source.records_at({p: place.offset for p, place in within.items()}) if within else None
    if there is not None:
        for partition, place in within.items():
            batch = _updates_at(there.get(partition), settings)
            bounds = Bounds(Admission.of(settings).max_id, width_of(settings.max_ahead))
            if bounds.broken_by(batch, settings.clock()) is not None:
                raise PipelineError(
                    f"{_place(partition, place)}: some rows of that record lie too far out and are "
                    "not taken, so they may have been counted or not: begin where a whole record "
                    "begins"
                )
            has = len(batch)
            if place.row >= has:
                raise PipelineError(
                    f"{_place(partition, place)}: the record there has {has} rows: give the offset "
                    f"{place.offset + 1} if all of them are done, fewer rows if not"
                )
    return found


def _place(partition: Partition, place: Position) -> str:
    return f"{partition.topic}:{partition.number}={place.offset}+{place.row}"


def _updates_at(polled: Polled | None, settings: Settings) -> Columns:
    """The rows that a record has; none if it is refused or not there."""
    if polled is None or not isinstance(polled.value, bytes):
        return NO_UPDATES
    try:
        fields = settings.fields_of(polled.partition.topic)
        return decode_record(polled.value, names=settings.names, fields=fields).batch
    except RecordError:
        return NO_UPDATES


# Going on -------------------------------------------------------------------------------------


def verify_and_seek(
    state: State, source: Source, given: Mapping[str, Any], accept_gap: bool
) -> tuple[Settings, list[Gap]]:
    """Set `source` to where `state` was taken. Returns the settings to go on with, those `given`
    with the record settings of the checkpoint, and the gaps, if they are accepted.

    Raises PipelineError if a setting cannot change any more, IdentityError if this is another
    source, RewrittenError if it holds other records than were read, OffsetError if records that are
    needed are gone."""
    check_source(source)
    settings = Settings(**{**given, **state.record_settings.kept(given)})
    state.identity.check(source.identity())
    positions = {partition: position.offset for partition, position in state.positions.items()}
    gaps = seek_to(source, positions, accept_gap)
    check_fingerprints(source, state.fingerprints)
    return settings, gaps


def seek_to(source: Source, positions: Mapping[Partition, int], accept_gap: bool) -> list[Gap]:
    """Set the source to these offsets; if gaps are accepted, at the first record still there.
    Returns the gaps. Raises OffsetError if anything else is wrong with an offset."""
    if not accept_gap:
        source.seek(positions)
        return []
    while True:
        firsts = source.first_offsets()
        gaps = [Gap(p, at, firsts[p]) for p, at in positions.items() if at < firsts.get(p, at)]
        try:
            source.seek({**positions, **{gap.partition: gap.stop for gap in gaps}})
        except OffsetError:
            # Retention may have dropped more since; if not, it is not the cause.
            if source.first_offsets() == firsts:
                raise
        else:
            return gaps


def opened(state: State, source: Source) -> State:
    """`state` with every partition that the source reads."""
    start = {p: Position(offset) for p, offset in source.positions().items()}
    return replace(state, identity=source.identity(), positions=start | state.positions)


def with_policies(state: State, settings: Settings) -> State:
    """`state` with what the settings say of keeping checkpoints and of taking records."""
    keep = settings.keep_checkpoints
    return replace(
        state,
        keep_checkpoints=state.keep_checkpoints if keep is None else keep,
        **Admission.of(settings)._asdict(),
    )


# Replay ---------------------------------------------------------------------------------------


def exact(entries: Iterable[Entry], gaps: Iterable[Gap]) -> Iterator[Entry]:
    """The entries that can be replayed as they were: all before the first that names lost
    records."""
    firsts = {gap.partition: gap.stop for gap in gaps}
    for entry in entries:
        if isinstance(entry, Chunk) and entry.first < firsts.get(entry.partition, 0):
            return
        yield entry


def replayed(source: Source, intake: Intake, entries: Iterable[Entry]) -> Iterator[StreamBatch]:
    """The batches that journal entries describe; what they leave waiting stays buffered.

    REQUIRES: source and intake stand where the journal begins. Raises OffsetError if records are
    gone, RewrittenError or CheckpointError if the source holds others."""
    rereader = Rereader(source)
    for entry in entries:
        if isinstance(entry, Chunk):
            intake.buffer_again(entry, rereader.read)
        else:
            yield intake.cut_again(entry)


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
        if not held and (found := self._source.poll_one(chunk.partition, POLL_RECORDS)) is not None:
            if not found:
                raise _gone(chunk)
            held.extend(found)
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


def skip_gaps(stream: StreamState, intake: Intake) -> list[Gap]:
    """Go on after records that are gone, unless the replay went past them; the gaps skipped."""
    ends = intake.ends(stream.state.positions)
    gaps = [gap._replace(start=ends[gap.partition]) for gap in stream.gaps]
    gaps = [gap for gap in gaps if gap.start < gap.stop]
    for gap in gaps:
        intake.skip(gap)
        log_event("gap accepted", logging.WARNING, **gap.detail())
    accepted = [Accepted("gap", now_ms(), gap.detail()) for gap in gaps]
    behind = {gap.partition: Position(gap.stop) for gap in gaps}
    stream.update(
        positions=stream.state.positions | behind, accepted=(*stream.state.accepted, *accepted)
    )
    return gaps


def accept_journal_loss(stream: StreamState, damage: Segment, number: int, replayed: int) -> None:
    """Go on without what the journal said from `damage` on, since checkpoint `number`: the log is
    read again from where the stream stands."""
    detail = {"problem": damage.problem, "checkpoint": number, "replayed": replayed}
    accepted = Accepted("journal", now_ms(), detail)
    stream.update(accepted=(*stream.state.accepted, accepted))
    log_event("journal loss accepted", logging.WARNING, **detail)


def why_anew(damage: Segment | None, publisher: Publisher | None) -> str:
    """Why a new run of what it publishes must begin after the replay; "" if the old one can go
    on."""
    if damage is not None:
        return "the journal was lost, so versions are made anew"
    if publisher is not None and publisher.is_behind():
        later = f"later {publisher.named} than the checkpoint"
        return f"the place holds {later}: was an older one restored?"
    return ""


# What goes together ---------------------------------------------------------------------------


def schemas_of(
    settings: Settings, directory: Path | None, *, writes: bool = True
) -> Schemas | None:
    """The schemas of records in Confluent's envelope, those that are kept in `directory` among
    them; None: such records are not read."""
    if not settings.enveloped:
        return None
    return Schemas(checked_registry(settings.schema_registry), directory, writes=writes)


def tell_sums(source: Source, records: Records) -> None:
    """Say where summed edges may be those of a topic that does not take part in the sum."""
    summed, others = shares_sums(records, {partition.topic for partition in source.positions()})
    if summed and others:
        advice = (
            f"an edge of {', '.join(summed)} has the sum of its rows, whatever {', '.join(others)} "
            "made of it: let their edges be others, or sum all of them up"
        )
        log_event("sums beside others", logging.WARNING, summed=summed, others=others,
                  advice=advice)  # fmt: skip


def check_source(source: object) -> None:
    """Raise PipelineError unless this is a source."""
    if not isinstance(source, Source):
        raise PipelineError(
            f"source is of type {type(source).__name__}: expected a source, as "
            "ingest.SqliteLog(path) or ingest.FileSource(path); derive your own from ingest.Source"
        )


def check_fit(source: Source, graph: StreamGraph, settings: Settings) -> None:
    """Raise PipelineError if these do not go together: the source reads names and the pipeline
    ids, it gives both directions of what is one edge of the graph, there is a window and the graph
    says that it keeps no times, or that it is on another device, or results would go to a topic
    that has another use. Or one of them is something else altogether."""
    check_source(source)
    if not all(hasattr(graph, name) for name in ("apply", "version")):
        found = f"{type(graph).__module__}.{type(graph).__qualname__}".removeprefix("builtins.")
        raise PipelineError(f"graph is of type {found}: expected one of lpma, as lpma.Graph()")
    check_results_topic(source, settings)
    if settings.changes is not None and not isinstance(graph, lpma.Graph):
        raise PipelineError(f"changes: a feed is of an lpma.Graph, not of {type(graph).__name__}")
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
    if source.names and not names:
        raise PipelineError(
            "the file's vertices go by names: say names=True here as well, or have the source "
            "read them as ids, with names=False"
        )


def refuse_mirrored(source: Source, directed: bool) -> None:
    """Raise PipelineError if the source gives both directions of an undirected file's edges, and
    the graph is undirected, too: it would add them up."""
    if source.mirrors and not directed:
        raise PipelineError(
            "the file says that its graph is undirected, and is read with each edge in both "
            "directions, which an undirected graph would add up: read it with mirror=False"
        )


def names_in(graph: StreamGraph) -> Names | None:
    """The graph's own dictionary, if it has one."""
    found: Names | None = getattr(graph, "names", None)
    return found


def rows_of(settings: Settings, graph: StreamGraph, path: Path | None = None) -> TableRows | None:
    """The rows of tables that are remembered: those in the file, or none yet. None: none are."""
    if not remembers_rows(settings.records):
        return None
    return TableRows(graph.directed) if path is None else TableRows.load(path, graph.directed)


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

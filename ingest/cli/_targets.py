"""The targets of commands: a saved store, a checkpoint directory, an embedded log, a Kafka."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpma.errors import BatchError, FormatError

from ..errors import CheckpointError, IngestError
from ..state.vertex_names import VertexNames

if TYPE_CHECKING:
    import lpma
    from lpma.names import Names
    from lpma.snapshot.stored import StoredGraph

    from ..sources import SqliteLog
    from ..state.checkpoint import Checkpoint, State

Store = Annotated[Path, typer.Argument(help="A saved store, or a checkpoint directory.")]

KAFKA = "kafka://"
HTTP = ("http://", "https://")
SINCE_1970_MS = range(10**11, 10**14)  # times of 1973 to 5138, as milliseconds; others are not
STDIN = "-"  # in place of the name of a file that is read; of one that is written, stdout
SPOOL = "lpma-stdin-"  # how the name of a folder begins that holds what stdin held
FIRST_NUMBER = 0  # of the checkpoint with which a stream begins


class TargetError(IngestError):
    """A command's target is not there, or is something else."""


@dataclass(frozen=True)
class Opened:
    graph: Any  # lpma.Graph, or a StoredGraph where that is enough
    path: Path  # the file it was read from
    checkpoint: dict[str, Any] | None  # number, operations, positions …; None for a saved store
    state: State | None = None  # of the stream, in a checkpoint
    not_begun: str = ""  # what to say if the stream has checkpointed nothing since it began

    @property
    def names(self) -> VertexNames:
        """What its vertices go by."""
        return VertexNames(self.graph.names)


def _begins_with(path: Path, magic: bytes) -> bool:
    """Whether `path` is a file that begins so."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


def is_store(path: Path) -> bool:
    """Whether `path` is a file that begins like a saved store."""
    from lpma.file.container import MAGIC

    return _begins_with(path, MAGIC)


def open_store(
    path: Path, device: str = "cpu", *, begun: bool = True, contents: bool = False
) -> Opened:
    """The graph of a saved store or of the newest good checkpoint in a directory, which may be
    in use: it is read without its lock. Raises TargetError, FormatError, DeviceError.

    begun: TargetError if the stream has checkpointed nothing since it began, with an empty graph:
    whoever asks that would take the stream for empty. If the graph is not, it is said on stderr.
    contents: the caller wants snapshots and figures alone, for which no store need be made."""
    if path.is_dir():
        opened = _open_checkpoint(path, device, contents)
        if begun and opened.not_begun:
            if not opened.graph.num_rows:
                raise TargetError(opened.not_begun)
            typer.echo(f"lpma: {opened.not_begun}", err=True)
        return opened
    if not path.is_file():
        raise TargetError(
            f"{path}: no such file or directory: `lpma load` or `lpma ingest` makes one"
        )
    _refuse_no_store(path)
    from ..state.vertex_names import names_of_store

    graph = _load(path, device, contents)
    return Opened(_with_names(graph, path, names_of_store(path)), path, None)


def _load(path: Path, device: str, contents: bool) -> Any:
    import lpma
    from lpma.snapshot.stored import StoredGraph, can_read

    return StoredGraph(path) if contents and can_read(device) else lpma.Graph.load(path, device)


def _with_names(graph: Any, path: Path, apart: Names | None) -> Any:
    """The graph with the names that an older release kept in a file apart, if it did. Raises
    FormatError if some of its vertices have no name."""
    if apart is not None:
        try:
            graph.take_names(apart)
        except BatchError as error:
            raise FormatError(f"{path}: {error}: restore it from a good copy") from None
    return graph


def _refuse_no_store(path: Path) -> None:
    """Raise TargetError for a file of another kind, with what takes it. What is called a store, or
    begins as one, is one, damaged or not."""
    if path.suffix == ".lpma" or is_store(path):
        return
    if is_log(path):
        raise TargetError(f"{path}: a log, no saved store: `lpma ingest --save STORE` makes one")
    raise TargetError(
        f"{path}: no saved store: if it is a file of edges, `lpma load {path} STORE` makes one"
    )


def is_log(path: Path) -> bool:
    """Whether a file is an embedded log, or another SQLite file."""
    return _begins_with(path, b"SQLite format 3\0")


def open_log(path: Path, topics: Sequence[str], opened: ExitStack) -> SqliteLog:
    """These topics of an embedded log, closed with `opened`. Raises TargetError if it lacks one:
    to read a topic would make it."""
    from ..sources import SqliteLog

    with SqliteLog(path, writable=False) as log:
        names = log.topic_names()
    if missing := set(topics) - names:
        there = ", ".join(sorted(names))
        raise TargetError(f"{path}: no topic {min(missing)!r}: name one by --topic, of {there}")
    return opened.enter_context(SqliteLog(path, topics))


def label_of(path: Path) -> str:
    """What messages call a file."""
    return path.name if path.parent.name.startswith(SPOOL) else str(path)


def spooled(source: str = STDIN) -> Path:
    """What stdin or a pipe holds, as a file, which is looked at before it is read. It goes with the
    process."""
    folder = tempfile.mkdtemp(prefix=SPOOL)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    is_stdin = source == STDIN
    path = Path(folder) / ("stdin" if is_stdin else "pipe")
    with ExitStack() as opened, open(path, "wb") as file:
        pipe = sys.stdin.buffer if is_stdin else opened.enter_context(open(source, "rb"))
        shutil.copyfileobj(pipe, file)
    return path


def is_stream(target: str) -> bool:
    """Whether this is an embedded log or a Kafka."""
    return target.startswith(KAFKA) or is_log(Path(target))


def _open_checkpoint(directory: Path, device: str, contents: bool) -> Opened:
    from ..state.directory import checkpoint_numbers, checkpoint_path

    problems: list[str] = []
    for number in reversed(checkpoint_numbers(directory)):
        try:
            opened = _read(checkpoint_path(directory, number), number, device, contents)
            if problems:
                said = f"{'; '.join(problems)}; checkpoint {number} is read"
                typer.echo(f"lpma: {directory}: {said}", err=True)
            elif number == FIRST_NUMBER:
                return replace(opened, not_begun=_not_begun(directory, opened))
            return opened
        except (CheckpointError, FormatError, OSError) as error:
            # It may be damaged, or the pipeline that writes here may just have removed it.
            problems.append(f"checkpoint {number}: {error}")
    if problems:
        raise TargetError(f"{directory}: no checkpoint can be read ({'; '.join(problems)})")
    raise TargetError(f"{directory}: holds no checkpoint: `lpma ingest --checkpoint` makes one")


def _not_begun(directory: Path, opened: Opened) -> str:
    """That its stream has checkpointed nothing since it began, and all that is known of it."""
    from ..feed.source import follows_feed
    from ..past.reach import moment, reachable
    from ..sources.base import kind_of
    from ..state.directory import writer_of

    assert opened.state is not None
    assert opened.checkpoint is not None
    identity = opened.state.identity
    topics = ", ".join(sorted(identity.topics))
    said = (
        f"{directory}: its stream has not checkpointed anything yet: it began at "
        f"{moment(opened.checkpoint['taken_ms'])}, from {kind_of(identity)} ({topics})"
    )
    last = max((span.last_version for span in reachable(directory)), default=0)
    is_copy = follows_feed(identity)
    if last > opened.state.version:
        said += f", and its journal has come to version {last}"
        if not is_copy:
            said += f", which --as-of-version {last} --as-of-source SOURCE reads"
    writer = writer_of(directory)
    if writer is None:
        again = "lpma replica" if is_copy else "lpma ingest"
        return f"{said}. If it has ended, `{again}` goes on with it; if it runs, {_ASK}"
    return f"{said}. Process {writer} writes there: {_ASK}"


_ASK = (
    "wait for the first checkpoint, after 60 s unless checkpoints.interval says otherwise, or ask "
    "the stream itself, by its log, kafka://HOST:PORT or http://HOST:PORT in place of the directory"
)


def _read(path: Path, number: int, device: str, contents: bool) -> Opened:
    from ..state.checkpoint import GRAPH, VERTICES, read_checkpoint, verify_file

    found = read_checkpoint(path, number)
    graph, apart = _load(path / GRAPH, device, contents), None
    if VERTICES in found.files:
        from lpma.names import Names

        verify_file(found, VERTICES)
        apart = Names.load(path / VERTICES)
    graph = _with_names(graph, path / GRAPH, apart)
    return Opened(graph, path / GRAPH, checkpoint_facts(found), found.state)


def checkpoint_facts(found: Checkpoint) -> dict[str, Any]:
    """What is reported about a checkpoint that was opened."""
    return {
        "number": found.number,
        "taken_ms": found.time,
        "operations": found.state.operations,
        "positions": list_positions(found.state),
        "accepted": [asdict(accepted) for accepted in found.state.accepted],
        "window": window_of(found.state),
        "expired": found.state.expired,
        "results": found.state.published and found.state.published.to_json(),
    }


def window_of(state: State) -> dict[str, int | str | None] | None:
    """The window of the stream, and its bound; None: it has none."""
    from ..pipeline.windows import facts_of, width_of

    kept = state.record_settings
    return facts_of(width_of(kept.window), kept.window_time, state.window_newest)


def format_window(window: dict[str, int | str | None]) -> str:
    """A window as people read it: its width in words where times are milliseconds since 1970, as
    far as their size tells; else numbers as they are, since their unit is the stream's."""
    from ..past.reach import moment
    from ..pipeline.windows import span_text

    width, before = window["width"], window["expired_before"]
    in_ms = window["time"] == "arrival" or (isinstance(before, int) and before in SINCE_1970_MS)
    said = [f"{span_text(int(width or 0)) if in_ms else width} by {window['time']}"]
    at = moment(int(before)) if in_ms and before is not None else before
    said.append("nothing expired yet" if before is None else f"expired before {at}")
    words = {"late": "late", "untimed": "without a time"}
    said += [f"{words[name]} {window[name]:,}" for name in words if name in window]
    return ", ".join(said)


def list_positions(state: State) -> list[dict[str, Any]]:
    """Where each partition is read from next, and how many rows of that record are done."""
    return [
        {"topic": topic, "partition": number, "offset": at.offset, "rows_done": at.row}
        for (topic, number), at in state.positions.items()
    ]


def place_of(position: dict[str, Any]) -> str:
    """One of these as `--from-offsets` takes it, and what that says."""
    offset, rows = position["offset"], position["rows_done"]
    return f"{offset}+{rows} ({rows:,} rows of that record are done)" if rows else str(offset)


def store_facts(opened: Opened) -> dict[str, Any]:
    """What is reported about a graph that was opened."""
    return {**graph_facts(opened.graph), "names": opened.names.count}


def graph_facts(graph: lpma.Graph | StoredGraph) -> dict[str, Any]:
    """What is reported about a graph: its size, its options, its state."""
    return {
        "device": graph.device,
        **size_of(graph),
        **made_with(graph),
        "segments": graph.segments,
        "levels": graph.levels,
        "density": graph.density,
        "version": graph.version,
        "time": graph.time,
        "memory_bytes": graph.nbytes,
        **({} if graph.left is None else {"left": graph.left}),
    }


def size_of(graph: lpma.Graph | StoredGraph) -> dict[str, int]:
    """Vertices present, which are counted by reading the graph; rows: 1 + the largest id present;
    and edges."""
    return {"vertices": graph.num_vertices, "rows": graph.num_rows, "edges": graph.num_edges}


def sides_text(left: int, named: bool) -> str:
    """How many vertices the left side of a bipartite graph has, and which the other's are."""
    if named:
        return f"{left:,} names, the others are the right side"
    return f"{left:,}: item 20 of the right side is vertex {left + 20}"


def made_with(graph: lpma.Graph | StoredGraph) -> dict[str, Any]:
    """The options that the graph was made with, by their names."""
    return {
        "directed": graph.directed,
        "predecessors": graph.has_predecessors,
        "weight_dtype": None if graph.weight_dtype is None else graph.weight_dtype.name,
        "times": graph.has_times,
        "strategy": graph.strategy,
        "segment_size": graph.segment_size,
    }

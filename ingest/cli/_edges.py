"""What `lpma load` and `lpma run` make a graph from: the edges of a file, a dataset, a
generator."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..formats.json import JsonFields
from ..formats.replies import DeadLetter
from ..sources.files.edge_layout import Noticed
from ..state.vertex_names import VertexNames
from ..types import Names
from ._console import Screen
from ._options import Ids
from ._targets import TargetError, is_stream

if TYPE_CHECKING:
    import lpma

BATCH_SIZE = 1_000_000  # operations
# Reasons that do not arise with --names.
NOT_IDS = tuple(f"{end}: {fault}" for end in ("src", "dst") for fault in ("not", "ids", "text nam"))
FIRST = 3  # lines shown
MAX_CHARACTERS = 60  # of a line


class LeftOut:
    """The lines left out so far."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.first: list[dict[str, str]] = []

    @property
    def count(self) -> int:
        return self.reasons.total()

    def add(self, line: bytes, reason: str) -> None:
        self.reasons[reason] += 1
        if len(self.first) < FIRST:
            text = line[:MAX_CHARACTERS].decode(errors="replace")
            self.first.append({"line": text, "reason": reason})

    def take(self, letter: DeadLetter) -> None:
        """Note a line of a file that the pipeline rejected, unless it was late."""
        if not letter.reason.startswith("late"):
            self.add(letter.value, letter.reason)

    def facts(self) -> dict[str, Any]:
        """What a JSON document says about them."""
        return {
            "rejected": self.count,
            "rejected_by": dict(self.reasons),
            "first_rejected": self.first,
        }

    def __str__(self) -> str:
        by = "; ".join(f"{reason}: {count:,}" for reason, count in self.reasons.most_common())
        first = ", ".join(repr(one["line"]) for one in self.first)
        hint = ""
        if any(reason.startswith(NOT_IDS) for reason in self.reasons):
            hint = ". Text and any 64-bit integer name vertices with --names"
        return f"left out {self.count:,} bad lines ({by}), the first: {first}{hint}"

    def nothing_of(self, what: str) -> str:
        """The message if no line was an operation."""
        return f"{what}: nothing was loaded: " + (str(self) if self.count else "it holds no edge")


@dataclass
class Edges:
    """The operations that `load` applies, piece by piece, and what is known about them; for a file,
    also what is noticed while it is read."""

    what: str
    pieces: Iterator[lpma.Columns]
    total: int | None
    directed: bool
    names: VertexNames = field(default_factory=VertexNames)
    left_out: LeftOut = field(default_factory=LeftOut)
    noticed: Noticed = field(default_factory=Noticed)

    def facts(self) -> dict[str, Any]:
        """What is reported about a file's lines."""
        return {**self.left_out.facts(), **columns_facts(self.noticed)}


def columns_facts(noticed: Noticed) -> dict[str, Any]:
    """What a JSON document says about a file's columns."""
    return {"header": noticed.header, "unused_columns": list(noticed.unused)}


def load_graph(
    source: str,
    directed: bool | None,
    columns: str | None,
    ids: Ids | None,
    device: str,
    screen: Screen,
) -> tuple[lpma.Graph, VertexNames]:
    """A graph of what `load` takes, with its defaults but for times, and not saved."""
    import lpma

    edges = find_edges(source, directed, columns, ids, screen, download=True, verify=True)
    graph = lpma.Graph(
        device=device, directed=edges.directed, times=False, names=edges.names.count is not None
    )
    fill(graph, edges, BATCH_SIZE, False, screen)
    return graph, edges.names


def fill(
    graph: lpma.Graph, edges: Edges, batch_size: int, strict: bool, screen: Screen
) -> tuple[int, float]:
    """Apply the edges in batches. Returns the number of operations and the seconds that this took.
    The screen says which columns are not used, and which lines were left out.

    Raises TargetError on a bad line if `strict`, or if a file's lines are all bad."""
    seconds, operations = 0.0, 0
    if graph.names is not None:
        edges.names = VertexNames(graph.names)
    for batch in _batches(edges.pieces, batch_size):
        started = time.perf_counter()
        graph.apply(_with_ids(batch, edges.names))
        seconds += time.perf_counter() - started
        operations += len(batch)
        screen.progress("load", operations, edges.total)
    left_out = edges.left_out
    if edges.total is None and operations == 0:
        raise TargetError(left_out.nothing_of(edges.what))
    if left_out.count and strict:
        raise TargetError(f"{edges.what}: {left_out}")
    for note in edges.noticed.notes():
        screen.say(f"{edges.what}: {note}")
    if left_out.count:
        screen.say(f"{edges.what}: {left_out}")
    return operations, seconds


def _with_ids(batch: lpma.Columns, names: VertexNames) -> lpma.Columns:
    if names.dictionary is None:
        return batch
    from ..mapping import mapped

    ids = mapped(names.dictionary, batch, Names(batch.src, batch.dst))
    return replace(ids, looked_up=True)


def _batches(pieces: Iterator[lpma.Columns], batch_size: int) -> Iterator[lpma.Columns]:
    for piece in pieces:
        for first in range(0, len(piece), batch_size):
            yield piece.rows(first, min(first + batch_size, len(piece)))


def find_edges(
    source: str,
    directed: bool | None,
    columns: str | None,
    ids: Ids | None,
    screen: Screen,
    download: bool,
    verify: bool,
    json: JsonFields | None = None,
) -> Edges:
    from .. import datasets
    from ..datasets import generators

    if is_stream(source):
        raise TargetError(
            f"{source}: a stream is not read here: `lpma ingest` keeps a graph of it, in a "
            "checkpoint or saved, and `lpma run diversity` watches it"
        )
    if Path(source).is_file():
        return _file_edges(Path(source), directed, columns, ids, json)
    for option, value in (("--columns", columns), ("--ids", ids), ("--src-field", json)):
        if value is not None:
            raise typer.BadParameter(f"{source} is not a file", param_hint=option)
    if source.partition(":")[0] in generators.names():
        try:
            made = generators.from_spec(source)
        except generators.GeneratorError as error:
            raise typer.BadParameter(str(error), param_hint="SOURCE") from error
        road = source.startswith("grid")
        return Edges(source, iter([made]), len(made), not road if directed is None else directed)
    if source not in datasets.names() and ("/" in source or Path(source).suffix):
        raise TargetError(f"{source}: no such file")
    graph = datasets.load(source, download=download, verify=verify, progress=screen.progress)
    made = graph.columns()
    what = f"{source} ({graph.path})"
    return Edges(what, iter([made]), len(made), graph.directed if directed is None else directed)


def _file_edges(
    path: Path, directed: bool | None, columns: str | None, ids: Ids | None,
    json: JsonFields | None,
) -> Edges:  # fmt: skip
    from lpma import Columns

    from ..sources.files.edge_lists import format_of, read_edge_list

    if json is not None and format_of(path) != "jsonl":
        raise typer.BadParameter(
            f"{path}: fields are for JSON lines, whose names end with .jsonl; for other files, "
            "--columns says which column is which",
            param_hint="--src-field and others",
        )
    edges = Edges(str(path), iter([]), None, directed is not False)
    if ids is Ids.mapped:
        from lpma.names import Names as Dictionary

        edges.names = VertexNames(Dictionary())

    def note(noticed: Noticed) -> None:
        edges.noticed = noticed

    def pieces() -> Iterator[Columns]:
        mirror = edges.directed  # an undirected graph would count the mirrored entry again
        read = read_edge_list(
            path, format_of(path), columns, mirror=mirror, ids=(ids or Ids.dense).value,
            notice=note, json=json,
        )  # fmt: skip
        for value in read:
            if isinstance(value, Columns):
                yield value
            else:
                edges.left_out.add(value.value, value.reason)

    edges.pieces = pieces()
    return edges

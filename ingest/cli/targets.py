"""What commands are pointed at: a saved store, a checkpoint directory, an edge file, a dataset."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpma.errors import FormatError

from ..errors import CheckpointError, IngestError

if TYPE_CHECKING:
    import lpma

    from ..checkpoint import State

Store = Annotated[Path, typer.Argument(help="A saved store, or a checkpoint directory.")]

KAFKA = "kafka://"
_SQLITE = b"SQLite format 3\0"


class TargetError(IngestError):
    """What a command was pointed at is not there, or is something else."""


@dataclass(frozen=True)
class Opened:
    graph: lpma.Graph
    path: Path  # the file it was read from
    checkpoint: dict[str, Any] | None  # number, operations, positions …; None for a saved store
    state: State | None = None  # of the stream, in a checkpoint
    mapped: bool = False  # whether its ids stand for names, in the checkpoint's dictionary


def is_store(path: Path) -> bool:
    """Whether this is a file that begins as a saved store does."""
    from lpma.persist import MAGIC

    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_store(path: Path, device: str = "cpu") -> Opened:
    """The graph of a saved store or of the newest good checkpoint in a directory, which may be
    in use: it is read without its lock. Raises TargetError, FormatError, DeviceError."""
    import lpma

    if path.is_dir():
        return _open_checkpoint(path, device)
    if not path.is_file():
        raise TargetError(
            f"{path}: no such file or directory: `lpma load` or `lpma ingest` makes one"
        )
    return Opened(lpma.Graph.load(path, device), path, None)


def is_log(path: Path) -> bool:
    """Whether a file is an embedded log, or another SQLite file."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def is_stream(target: str) -> bool:
    """Whether this is an embedded log or a Kafka."""
    return target.startswith(KAFKA) or is_log(Path(target))


def _open_checkpoint(directory: Path, device: str) -> Opened:
    import lpma

    from ..checkpoint import GRAPH, VERTICES, read_checkpoint
    from ..directory import checkpoint_numbers, checkpoint_path

    problems = []
    for number in reversed(checkpoint_numbers(directory)):
        path = checkpoint_path(directory, number)
        try:
            state = read_checkpoint(path, number).state
            graph = lpma.Graph.load(path / GRAPH, device)
        except (CheckpointError, FormatError, OSError) as error:
            # It may be damaged, or just have been removed by the pipeline that writes here.
            problems.append(f"checkpoint {number}: {error}")
            continue
        facts = {
            "number": number,
            "operations": state.operations,
            "positions": positions_said(state),
            "accepted": [asdict(accepted) for accepted in state.accepted],
        }
        return Opened(graph, path / GRAPH, facts, state, (path / VERTICES).exists())
    if problems:
        raise TargetError(f"{directory}: no checkpoint can be read ({'; '.join(problems)})")
    raise TargetError(f"{directory}: holds no checkpoint: `lpma ingest --checkpoint` makes one")


def positions_said(state: State) -> list[dict[str, Any]]:
    """Where each partition is read from next."""
    return [
        {"topic": partition.topic, "partition": partition.number, "offset": position.offset}
        for partition, position in state.positions.items()
    ]


def graph_facts(graph: lpma.Graph) -> dict[str, Any]:
    """What is told of a graph: its size, how it was made, how it stands."""
    return {
        "device": graph.device,
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "directed": graph.directed,
        "predecessors": graph.has_predecessors,
        "weight": None if graph.weight_dtype is None else graph.weight_dtype.name,
        "times": graph.has_times,
        "strategy": graph.strategy,
        "segment_size": graph.segment_size,
        "segments": graph.segments,
        "levels": graph.levels,
        "density": graph.density,
        "version": graph.version,
        "time": graph.time,
        "memory_bytes": graph.nbytes,
    }

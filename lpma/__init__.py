"""lpma: a streaming graph store. The public names, and nothing else."""

from .batch.builder import Batch, pinned_batch
from .batch.columns import Columns, Kind
from .compilation import compile
from .engine.answers import Answers
from .engine.net import Watch
from .errors import (
    AnswersTooLarge,
    BatchError,
    BrokenStore,
    ConcurrentWrite,
    DeviceError,
    FormatError,
    InvariantError,
    LpmaError,
    OutOfMemory,
    SnapshotTooLarge,
    StoreTooLarge,
    VertexError,
)
from .graph import Graph
from .interop.edges import from_edges
from .interop.frames import from_dataframe
from .interop.graphs import from_igraph, from_networkx
from .interop.matrices import from_edge_index, from_scipy
from .pma.changes import Change
from .pma.counters import Stats, Unchanged
from .results import Changes, Edge, Edges, Neighbors, NetChanges
from .snapshot.snapshot import Snapshot

__version__ = "0.1.0"

__all__ = [
    "Answers",
    "AnswersTooLarge",
    "Batch",
    "BatchError",
    "BrokenStore",
    "Change",
    "Changes",
    "Columns",
    "ConcurrentWrite",
    "DeviceError",
    "Edge",
    "Edges",
    "FormatError",
    "Graph",
    "InvariantError",
    "Kind",
    "LpmaError",
    "Neighbors",
    "NetChanges",
    "OutOfMemory",
    "Snapshot",
    "SnapshotTooLarge",
    "Stats",
    "StoreTooLarge",
    "Unchanged",
    "VertexError",
    "Watch",
    "__version__",
    "compile",
    "from_dataframe",
    "from_edge_index",
    "from_edges",
    "from_igraph",
    "from_networkx",
    "from_scipy",
    "pinned_batch",
]


def __dir__() -> list[str]:
    """What a user can use: not the modules that it is made of."""
    return __all__

"""Files of graphs that NetworkX reads: GraphML, GEXF, GML and Pajek. It holds the whole graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lpma.batch.columns import MAX_VERTEX
from lpma.dependencies import how_to_install
from lpma.display.words import size_of

from ...errors import SourceError
from ...formats.names import DECIMALS
from .formats import BY_NETWORKX, CALLED
from .pieces import Array, Piece, Vertices
from .reading import Asked, Reading
from .tables import read_columns
from .unpacking import unpacked

TOLD_BYTES = 1 << 23  # from this size on it takes long enough to be said before
BYTES_A_SECOND = 1_500_000  # that NetworkX reads: 1 million of GML, 2.5 of GEXF
MEMORY = 15  # bytes for each byte of the file


def said_before(path: Path, format: str) -> str | None:
    """What to say before a large file is read so; None of others."""
    size = path.stat().st_size
    if format not in BY_NETWORKX or size < TOLD_BYTES:
        return None
    seconds = size / BYTES_A_SECOND
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return (
        f"{path.name}: {size_of(size)} of {CALLED[format]} are read by networkx, which holds the "
        f"graph whole: this takes some {time} and {size_of(MEMORY * size)} of memory; a .csv of "
        "its edges is read as it comes"
    )


def open_by_networkx(
    path: Path, format: str, asked: Asked, mirror: bool
) -> tuple[Reading, Iterator[Piece], Vertices]:
    """How the file is read, its pieces, and its vertices. mirror: whether an edge of an undirected
    graph gives both. Raises SourceError, OSError."""
    import pyarrow

    graph = _read(path, format)
    nodes = _names(list(graph.nodes))
    place = {node: row for row, node in enumerate(graph.nodes)}
    edges = list(graph.edges(data=True))
    table: dict[str, Any] = {
        "source": nodes[[place[u] for u, _, _ in edges]],
        "target": nodes[[place[v] for _, v, _ in edges]],
    }
    keys = dict.fromkeys(key for _, _, data in edges for key in data)
    for key in keys:
        values = [data.get(key) for _, _, data in edges]
        if key not in table and all(isinstance(v, int | float | str | None) for v in values):
            table[key] = values if _of_one_type(values) else [v and str(v) for v in values]
    columns = {name: pyarrow.array(values) for name, values in table.items()}
    named = nodes.dtype.kind == "U" or bool(((nodes < 0) | (nodes > MAX_VERTEX)).any())
    reading, pieces = read_columns(
        path, format, columns, asked, mirror, directed=graph.is_directed(), named=named
    )
    return reading, pieces, lambda: nodes.astype(object) if reading.named else nodes


def _read(path: Path, format: str) -> Any:
    try:
        import networkx
    except ImportError as error:
        raise SourceError(
            f"{path}: {CALLED[format]} is read through networkx, which is not installed: "
            f"{how_to_install('networkx')}"
        ) from error
    with unpacked(path) as file:
        try:
            if format == "gml":
                text = file.read().decode("utf-8", "replace").splitlines()
                try:
                    return networkx.parse_gml(text)
                except networkx.NetworkXError as error:
                    if "label" not in str(error):
                        raise
                    return networkx.parse_gml(text, label="id")
            return getattr(networkx, f"read_{format}")(file)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # whatever NetworkX raises on what it cannot read
            raise SourceError(f"{path}: not read as {CALLED[format]}: {error}") from error


def _names(nodes: list[Any]) -> Array:
    """What the vertices are called: integers where all are, in decimals, else text."""
    texts = [str(node) for node in nodes]
    if all(DECIMALS.fullmatch(text) and -(2**63) <= int(text) < 2**63 for text in texts):
        return np.array([int(text) for text in texts], np.int64)
    return np.array(texts, np.str_)


def _of_one_type(values: list[Any]) -> bool:
    return len({isinstance(value, str) for value in values if value is not None}) < 2

"""Files of graphs that NetworkX reads: GraphML, GEXF, GML and Pajek. It holds the whole graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lpma.dependencies import how_to_install

from ...errors import SourceError
from ...formats.names import DECIMALS
from .kinds import CALLED
from .pieces import Array, Piece, Vertices
from .reading import Asked, Reading
from .tables import BATCH_ROWS, SAMPLE_ROWS, guessed_of_columns, named_by_range, piece_of_arrow
from .unpacking import unpacked

BYTES_AN_EDGE = 1000  # of memory, for NetworkX


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
    sample = {
        name: ["" if v is None else str(v) for v in column[:SAMPLE_ROWS].to_pylist()]
        for name, column in columns.items()
    }
    reading = guessed_of_columns(path, format, sample, list(columns), asked)
    directed = graph.is_directed()
    reading = replace(reading, directed=directed, mirror=mirror and not directed)
    if reading.guessed:
        ends = [columns[name] for name in ("source", "target")]
        text = nodes.dtype.kind == "U"
        ranges = [(int(nodes.min()), int(nodes.max()))] if len(nodes) and not text else []
        reading = named_by_range(replace(reading, named=False, why=""), ranges, text and bool(ends))

    def pieces() -> Iterator[Piece]:
        used = {field: columns[reading.columns[p]] for field, p in reading.places.items()}
        for first in range(0, len(edges), BATCH_ROWS):
            rows = {field: column[first : first + BATCH_ROWS] for field, column in used.items()}
            yield piece_of_arrow(rows, reading, first)

    return reading, pieces(), lambda: nodes.astype(object) if reading.named else nodes


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

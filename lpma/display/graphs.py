"""A graph in a line, and as a table with two sketches: its degrees, and how full its levels are.

Nothing is counted that the store does not keep count of, unless the graph is small. Degrees of
large graphs are those of a sample of rows, evenly spread, and densities those of some segments of a
level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import query
from ..arrays import to_host
from ..stores import Stores
from . import html, words

Array = npt.NDArray[Any]

SMALL_SLOTS = 1 << 16  # vertices are counted up to here
SAMPLED_ROWS = 1 << 12
SAMPLED_SEGMENTS = 1 << 12  # of a level
LISTED = 3  # of the vertices with the most edges


@dataclass(frozen=True)
class Figures:
    """What is known without counting. rows: None where it would have to be searched for."""

    edges: int
    rows: int | None
    version: int
    is_small: bool
    is_plain: bool


def figures(stores: Stores) -> Figures:
    """REQUIRES: the caller holds the graph's lock."""
    out = stores.out
    is_small = out.num_slots <= SMALL_SLOTS
    rows = out.largest_vertex() + 1 if is_small or out.largest is not None else None
    return Figures(stores.num_edges, rows, stores.version, is_small, stores.is_provisional)


def size_in_words(known: Figures, vertices: int | None) -> str:
    """How many vertices there are, or else how many rows, and how many edges."""
    parts = []
    if vertices is not None:
        parts.append(words.count_of(vertices, "vertex", "vertices"))
    elif known.rows is not None:
        parts.append(words.count_of(known.rows, "row", "rows"))
    parts.append(words.count_of(known.edges, "edge", "edges"))
    return ", ".join(parts)


@dataclass(frozen=True)
class Sketch:
    """What is drawn of a graph. Everything on the host."""

    ids: Array  # uint32: rows that were looked at
    degrees: Array  # int64: the out-degree of each
    densities: list[float]  # by level
    is_sample: bool
    density: float
    levels: int
    nbytes: int
    time: int


def sketch(stores: Stores) -> Sketch:
    """Look at some rows and segments. REQUIRES: the caller holds the graph's lock."""
    out = stores.out
    rows = stores.largest_vertex() + 1
    step = max(-(-rows // SAMPLED_ROWS), 1)
    ids = np.arange(0, rows, step, dtype=np.uint32)
    near = stores.place.near(ids)
    degrees = np.asarray(to_host(query.degrees(out, None, near, None)))
    return Sketch(
        ids, degrees, densities(out.segments), step > 1, out.density, int(out.segments.m),
        stores.nbytes, stores.time,
    )  # fmt: skip


def densities(segments: Any) -> list[float]:
    """The share of filled slots by level (see layout.py), of at most SAMPLED_SEGMENTS segments a
    level."""
    m, size = segments.m, segments.segment_size
    leaves = segments.counts[1 << m :]
    found = []
    for level in range(m + 1):
        first = 0 if level == 0 else 1 << (m - level)
        stride = 1 << (m - level + 1)
        stride *= max((1 << max(level - 1, 0)) // SAMPLED_SEGMENTS, 1)
        held = np.asarray(to_host(leaves[first::stride]))
        found.append(float(held.mean()) / size)
    return found


def table(g: Any, known: Figures, vertices: int | None, drawn: Sketch) -> str:
    """The graph as HTML. g: an lpma.Graph, whose facts are read without its lock."""
    rows = [
        ("device", g.device + (", kept by NumPy alone for now" if known.is_plain else "")),
        ("size", size_in_words(known, vertices)),
        ("edges are", words.type_of(g.directed, g.weight_dtype, g.has_times)),
    ]
    names = g.names
    if names is not None:
        rows.append(("names", f"{len(names):,}"))
    busiest = _busiest(drawn, names)
    if busiest:
        of = " (of a sample)" if drawn.is_sample else ""
        rows.append((f"most edges out{of}", busiest))
    levels = words.count_of(drawn.levels + 1, "level", "levels")
    rows += [
        ("version", f"{known.version:,}"),
        ("last update at", words.moment_of(drawn.time)),
        (
            "store",
            f"{levels}, {drawn.density:.0%} full, {words.size_of(drawn.nbytes)}",
        ),
    ]
    of = f"degrees of {len(drawn.ids):,} rows" if drawn.is_sample else "vertices by degree"
    charts = [words.degree_chart(drawn.degrees, of), words.density_chart(drawn.densities)]
    return html.page("lpma.Graph", rows, charts)


def _busiest(drawn: Sketch, names: Any) -> str:
    """The rows with the most edges out, and how many."""
    order = np.argsort(-drawn.degrees, kind="stable")[:LISTED]
    order = order[drawn.degrees[order] > 0]
    called = drawn.ids[order] if names is None else names.of(drawn.ids[order])
    pairs = zip(called.tolist(), drawn.degrees[order].tolist(), strict=True)
    return ", ".join(f"{str(name)[:40]} ({degree:,})" for name, degree in pairs)

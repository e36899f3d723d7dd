"""A graph in a line, and as a table with two sketches: its degrees, and how full its levels are.

Nothing is counted that the store does not keep count of, unless the graph is small. Degrees of
large graphs are those of a sample of rows, evenly spread, and densities those of some segments of a
level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, to_host
from ..engine import queries
from ..engine.stores import Stores
from ..errors import LpmaError
from . import html, words

Read = Callable[..., Any]

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


def line(g: Any, read: Read, stores: Stores, counted: tuple[int, int] | None) -> str:
    """A graph in one line. g: an lpma.Graph; read: calls a function under its lock; counted: (a
    version, the vertices then)."""
    kind = "directed" if g.directed else "undirected"
    named = ", named" if g.names is not None else ""
    try:
        known = read(_figures, stores)
        size = _size_in_words(known, _count_if_cheap(g, known, counted))
        plain = ", kept by NumPy" if known.is_plain else ""
        what = f"{kind}{named}, {size}, version {known.version:,}{plain}"
    except LpmaError as error:  # broken, or in use by this very thread
        what = f"{kind}{named}, {type(error).__name__}"
    return f"<lpma.Graph on {g.device}: {what}>"


def table(g: Any, read: Read, stores: Stores, counted: tuple[int, int] | None) -> str:
    """A graph as HTML. Arguments: as of `line`."""
    try:
        known, drawn = read(_figures, stores), read(_sketch, stores)
        size = _size_in_words(known, _count_if_cheap(g, known, counted))
    except LpmaError as error:
        return html.page("lpma.Graph", [(type(error).__name__, str(error))], [])
    return _table(g, known, size, drawn)


def _figures(stores: Stores) -> Figures:
    """REQUIRES: the caller holds the graph's lock."""
    out = stores.out
    is_small = out.num_slots <= SMALL_SLOTS
    rows = out.largest_vertex() + 1 if is_small or out.largest is not None else None
    return Figures(stores.num_edges, rows, stores.version, is_small, stores.is_provisional)


def _count_if_cheap(g: Any, known: Figures, counted: tuple[int, int] | None) -> int | None:
    """The vertices, where they are few or counted already."""
    if known.is_small or (counted is not None and counted[0] == known.version):
        return int(g.num_vertices)
    return None


def _size_in_words(known: Figures, vertices: int | None) -> str:
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


def _sketch(stores: Stores) -> Sketch:
    """Look at some rows and segments. REQUIRES: the caller holds the graph's lock."""
    out = stores.out
    rows = stores.largest_vertex() + 1
    step = max(-(-rows // SAMPLED_ROWS), 1)
    ids = np.arange(0, rows, step, dtype=np.uint32)
    near = stores.place.localize(ids)
    degrees = np.asarray(to_host(queries.degrees(out, None, near, None)))
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


def _table(g: Any, known: Figures, size: str, drawn: Sketch) -> str:
    """The facts of g are read without its lock."""
    rows = [
        ("device", g.device + (", kept by NumPy alone for now" if known.is_plain else "")),
        ("size", size),
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

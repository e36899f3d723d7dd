"""A graph in a line, and as a table with two sketches: its degrees, and how full its levels are.

Nothing is counted that the store does not keep count of, unless the graph is small. Degrees of
large graphs are those of a sample of rows.
"""

from __future__ import annotations

from collections.abc import Callable
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
LISTED = 3  # of the vertices with the most edges


def line(g: Any, read: Read, stores: Stores, counted: tuple[int, int] | None) -> str:
    """A graph in one line. read: calls a function under its lock; counted: (version, vertices)."""
    kind = "directed" if g.directed else "undirected"
    named = ", named" if g.names is not None else ""
    try:
        size, version, is_plain = _known(g, read, stores, counted)
        plain = ", kept by NumPy" if is_plain else ""
        what = f"{kind}{named}, {size}, version {version:,}{plain}"
    except LpmaError as error:  # broken, or in use by this very thread
        what = f"{kind}{named}, {type(error).__name__}"
    return f"<lpma.Graph on {g.device}: {what}>"


def table(g: Any, read: Read, stores: Stores, counted: tuple[int, int] | None) -> str:
    """A graph as HTML. Arguments: as of `line`."""
    try:
        size, version, is_plain = _known(g, read, stores, counted)
        ids, degrees, is_sample = read(_degrees, stores)
        levels = words.count_of(g.levels + 1, "level", "levels")
        rows = [
            ("device", g.device + (", kept by NumPy alone for now" if is_plain else "")),
            ("size", size),
            ("edges are", words.type_of(g.directed, g.weight_dtype, g.has_times)),
        ]
        if g.names is not None:
            rows.append(("names", f"{len(g.names):,}"))
        busiest = _busiest(ids, degrees, g.names)
        if busiest:
            rows.append((f"most edges out{' (of a sample)' if is_sample else ''}", busiest))
        rows += [
            ("version", f"{version:,}"),
            ("last update at", words.moment_of(g.time)),
            ("store", f"{levels}, {g.density:.0%} full, {words.size_of(g.nbytes)}"),
        ]
        densities = words.density_chart(g.level_densities().tolist())
    except LpmaError as error:
        return html.page("lpma.Graph", [(type(error).__name__, str(error))], [])
    of = f"degrees of {len(ids):,} rows" if is_sample else "vertices by degree"
    return html.page("lpma.Graph", rows, [words.degree_chart(degrees, of), densities])


def _known(
    g: Any, read: Read, stores: Stores, counted: tuple[int, int] | None
) -> tuple[str, int, bool]:
    """(vertices, or else rows, and edges in words; the version; whether NumPy keeps the store).
    Vertices are counted where they are few or counted already."""

    def look() -> tuple[bool, int | None, int, int, bool]:
        out = stores.out
        is_small = out.num_slots <= SMALL_SLOTS
        rows = out.largest_vertex() + 1 if is_small or out.largest is not None else None
        return is_small, rows, stores.num_edges, stores.version, stores.is_provisional

    is_small, rows, edges, version, is_plain = read(look)
    parts = [words.count_of(edges, "edge", "edges")]
    if is_small or (counted is not None and counted[0] == version):
        parts.insert(0, words.count_of(g.num_vertices, "vertex", "vertices"))
    elif rows is not None:
        parts.insert(0, words.count_of(rows, "row", "rows"))
    return ", ".join(parts), version, is_plain


def _degrees(stores: Stores) -> tuple[Array, Array, bool]:
    """(uint32: rows that were looked at, int64: the out-degree of each, whether they are a sample),
    on the host. REQUIRES: the caller holds the graph's lock."""
    rows = stores.largest_vertex() + 1
    step = max(-(-rows // SAMPLED_ROWS), 1)
    ids = np.arange(0, rows, step, dtype=np.uint32)
    found = queries.degrees(stores.out, None, stores.place.localize(ids), None)
    return ids, np.asarray(to_host(found)), step > 1


def _busiest(ids: Array, degrees: Array, names: Any) -> str:
    """The rows with the most edges out, and how many."""
    order = np.argsort(-degrees, kind="stable")[:LISTED]
    order = order[degrees[order] > 0]
    called = ids[order] if names is None else names.of(ids[order])
    pairs = zip(called.tolist(), degrees[order].tolist(), strict=True)
    return ", ".join(f"{str(name)[:40]} ({degree:,})" for name, degree in pairs)

"""A snapshot in a line, and as a table with a sketch of its degrees, of all rows or of a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import on_device, to_host
from ..display import html, words
from .columns import KEPT

if TYPE_CHECKING:
    from .csr import Csr

SAMPLED_ROWS = 1 << 16
SMALL_ENTRIES = 1 << 16  # vertices are counted up to here


def line_of(s: Csr) -> str:
    """The snapshot in one line; nothing that takes long is counted."""
    kind = "directed" if s.directed else "undirected"
    named = ", named" if s.names is not None else ""
    return (
        f"<lpma.Snapshot on {_device_of(s)}: {kind}{named}, {_size_of(s)}, version {s.version:,}>"
    )


def _device_of(s: Csr) -> str:
    indptr: Any = s._indptr
    return f"cuda:{indptr.device.id}" if on_device(indptr) else "cpu"


def _size_of(s: Csr) -> str:
    known = "num_vertices" in s.views or s._added is None
    if known or len(s._indices) <= SMALL_ENTRIES >= s.num_rows:
        vertices = words.count_of(s.num_vertices, "vertex", "vertices")
    else:
        vertices = words.count_of(s.num_rows, "row", "rows")
    return f"{vertices}, {words.count_of(s.num_edges, 'edge', 'edges')}"


def table_of(s: Csr) -> str:
    """The snapshot as HTML."""
    step = max(-(-s.num_rows // SAMPLED_ROWS), 1)
    starts, ends = s._indptr[:-1][::step], s._indptr[1:][::step]
    degrees = np.asarray(to_host(ends)) - np.asarray(to_host(starts))
    held = [getattr(s, name) for name in KEPT]
    rows = [
        ("device", _device_of(s)),
        ("size", _size_of(s)),
        ("edges are", words.type_of(s.directed, None if s._weights is None else s._weights.dtype,
                                    s._times is not None)),
        ("version", f"{s.version:,}"),
        ("last update at", words.moment_of(s.time)),
        ("arrays", words.size_of(sum(array.nbytes for array in held if array is not None))),
    ]  # fmt: skip
    names = s.names
    if names is not None:
        rows.insert(3, ("names", f"{len(names):,}"))
    of = f"degrees of {len(degrees):,} rows" if step > 1 else "vertices by degree"
    return html.page("lpma.Snapshot", rows, [words.degree_chart(degrees, of)])

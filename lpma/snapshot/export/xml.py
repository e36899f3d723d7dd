"""A snapshot as GraphML and GEXF, the XML of programs that draw graphs: Gephi, yEd, Cytoscape.

networkx writes both, from a graph of its own in memory, and XML takes some 200 bytes an edge: so
this is for graphs that can be drawn, of at most MAX_ITEMS vertices and edges.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...arrays import to_host
from ...dependencies import optional_import
from ...file.atomic import StrPath, atomic_write, check_writable
from ..csr import Csr
from .edges import named
from .matrices import to_networkx
from .room import ExportError, tell_left

MAX_ITEMS = 2_000_000

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(s: Csr, path: StrPath, form: str) -> None:
    """The snapshot as a form: "graphml", or "gexf": 1.2, as networkx writes it."""
    networkx = optional_import("networkx", "networkx", f"write_{form}()")
    check_writable(path, f".{form}")
    items = s.num_vertices + s.num_edges
    if items > MAX_ITEMS:
        raise ExportError(
            f"{path}: {items:,} vertices and edges are more than the {MAX_ITEMS:,} that {form} is "
            "written for: write_parquet() and write_csv() take any number"
        )
    _refuse_names(s, form)
    tell_left(s, f".{form}")
    graph: Any = to_networkx(s)
    with atomic_write(path) as file:
        if form == "graphml":
            # The writer of the standard library: lxml, if it is there, would write other bytes.
            networkx.write_graphml_xml(graph, file)
        else:
            networkx.write_gexf(graph, file)


def _refuse_names(s: Csr, form: str) -> None:
    """Raise ExportError if names would be lost: XML knows text alone."""
    if s.names is None:
        return
    names = named(s, np.flatnonzero(to_host(s._present))).tolist()
    if len(set(map(str, names))) < len(names):
        raise ExportError(
            f"{form} has no integers as names, and some are the same as a name that is text: "
            "write_parquet() and write_csv() tell them apart"
        )
    for name in names:
        if isinstance(name, str) and _NOT_IN_XML.search(name):
            raise ExportError(f"the name {name!r} has a character that XML cannot hold")

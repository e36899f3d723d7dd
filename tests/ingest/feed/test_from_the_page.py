"""The edge feed, followed by a reader that was written from `docs/reference/format.md` alone, with
msgpack, struct and dictionaries: it has the edges of the graph, and the digest of each version."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import ingest
import lpma
from tests.support.contents import edges_of
from tests.support.fed_stream import records

MASK = 2**64 - 1


def h(x: int) -> int:
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def names_in(part: dict[str, Any], name: str, rows: int) -> list[Any]:
    """The column `name` of names, in whichever of its forms."""
    if name in part:
        size = "I" if len(part[name]) == 4 * rows else "Q"
        return list(struct.unpack(f"<{rows}{size}", part[name]))
    if f"{name}_signed" in part:
        return list(struct.unpack(f"<{rows}q", part[f"{name}_signed"]))
    ends = struct.unpack(f"<{rows}I", part[f"{name}_ends"])
    texts = [part[f"{name}_text"][a:b].decode() for a, b in zip((0, *ends), ends, strict=False)]
    numbers = part.get(f"{name}_number", bytes(rows))
    return [int(text) if number else text for text, number in zip(texts, numbers, strict=True)]


class Copy:
    """What the page says of a graph that follows a run from its beginning."""

    def __init__(self) -> None:
        self.edges: dict[tuple[Any, Any], tuple[Any, Any]] = {}  # (weight, time) by (src, dst)
        self.added: set[Any] = set()
        self.ids: dict[Any, int] = {}
        self.versions = 0

    def take(self, part: dict[str, Any]) -> None:
        if "named" in part:
            names = names_in(part, "names", part["named"])
            self.ids |= {name: id for id, name in enumerate(names, part["first"])}
        if "rows" in part:
            self._rows(part, part["rows"])
        if part["part"] == part["parts"] - 1:
            self.versions += 1
            assert len(self.edges) == part["edges"]
            assert self.digest(" names" in part["graph"]) == part["digest"]

    def _rows(self, part: dict[str, Any], rows: int) -> None:
        weights: Any = [None] * rows
        times: Any = [None] * rows
        if "weight" in part:
            size = "f" if " float32" in part["graph"] else "d"
            weights = struct.unpack(f"<{rows}{size}", part["weight"])
        if "time" in part:
            times = struct.unpack(f"<{rows}q", part["time"])
        ends = names_in(part, "src", rows), names_in(part, "dst", rows)
        for change, u, v, weight, time in zip(part["change"], *ends, weights, times, strict=True):
            if change in (0, 4):
                self.edges[u, v] = weight, time
            elif change == 1:
                self.edges.pop((u, v), None)
            elif change == 2:
                self.added.add(u)
            else:
                self.added.remove(u)
                self.edges = {edge: of for edge, of in self.edges.items() if u not in edge}

    def digest(self, names: bool) -> str:
        id = self.ids.__getitem__ if names else int
        found = sum(h((id(u) << 32) + id(v)) for u, v in self.edges)
        found += sum(h((id(v) << 32) + 2**32 - 1) for v in self.added)
        return f"{found & MASK:016x}"


@pytest.mark.parametrize("seed", range(12))
def test_a_reader_made_from_the_page_has_the_same_graph(
    seed: int, device: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    names, directed, times = (bool(each) for each in rng.integers(0, 2, 3))
    dtype = (None, "float32", "float64")[seed % 3]
    graph = lpma.Graph(
        directed=directed, times=times, weight_dtype=dtype, names=names, device=device
    )
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", list(records(rng, 60, names=names, times=times)))
        with ingest.Pipeline(log, graph, names=names, changes=log, batch_size=9) as pipeline:
            pipeline.run("end")
    copy = Copy()
    with ingest.SqliteLog(tmp_path / "log", ["changes"]) as feed:
        for record in feed.poll(max_records=10_000):
            copy.take(msgpack.unpackb(record.value))
    assert copy.versions == graph.version + 1 > 10
    assert both_ways(copy.edges, directed) == edges_of(graph.snapshot(), weight=None, time=None)


def both_ways(edges: dict[Any, Any], directed: bool) -> dict[Any, Any]:
    """As a snapshot has them, which has both directions of an undirected edge."""
    return edges if directed else edges | {(v, u): of for (u, v), of in edges.items()}

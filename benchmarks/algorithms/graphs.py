"""The graphs that algorithms are measured on: undirected snapshots without loops.

Synthetic ones are RMAT with DRAWS draws for each vertex, ids shuffled, made simple; at scale 20,
where published figures are quoted, DRAWS_OF_20 draws, as those have. Real ones are the data sets
that are at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import lpma
from ingest import datasets
from ingest.datasets import generators
from lpma import Snapshot
from lpma.arrays import to_host
from lpma.snapshot.columns import ARRAYS

from .. import workloads_gpu
from ..keys import Array, ends_of
from ..report import Report, Setting

DRAWS, DRAWS_OF_20 = 16, 18_000_000
SEED = 1
# Scale and draws of the large graphs, which are drawn on the device.
LARGE = ((22, 60_000_000), (24, 300_000_000))
INSERTED = 20_000_000  # edges at once, so that the batch takes little memory beside the graph


def snapshots(
    device: str, scales: Sequence[int], names: Sequence[str] = ()
) -> Iterator[tuple[str, Snapshot]]:
    """RMAT of these scales, and the named real graphs that are at hand."""
    for scale in scales:
        yield f"RMAT {scale}", rmat(scale, device)
    for name in names:
        if datasets.find(name) is not None:
            yield name, real(name, device)


def rmat(scale: int, device: str, draws: int | None = None) -> Snapshot:
    return undirected(*generators.rmat(scale, draws or DRAWS << scale, seed=SEED), device)


def rmat_as_published(scale: int, device: str) -> Snapshot:
    """With as many draws as the published figures have."""
    return rmat(scale, device, DRAWS_OF_20 if scale == 20 else None)


def streamed(scale: int, draws: int) -> tuple[lpma.Graph, Snapshot]:
    """RMAT on the device, as a stream of interactions leaves it: in a directed store, where views
    have both directions to find."""
    import cupy

    keys = workloads_gpu.rmat(scale, draws, 0, draws).keys
    cupy.get_default_memory_pool().free_all_blocks()
    graph = lpma.Graph(weight_dtype=None, times=False, device="cuda")
    for first in range(0, len(keys), INSERTED):
        graph.insert(*ends_of(keys[first : first + INSERTED]))
    return graph, graph.snapshot()


def add_large(
    report: Report, setting: Setting, row: Callable[[str, Snapshot], dict[str, Any]]
) -> None:
    """A row of each large graph, while there is time; of a small one, if that is to be quick. A
    graph is dropped before the next is drawn."""
    for scale, draws in ((12, 1 << 16),) if setting.quick else LARGE:
        if not setting.out_of_time():
            graph, s = streamed(scale, draws)
            report.add(row(f"RMAT {scale}", s))
            del graph, s


def memory_columns(before: int, held: int, edges: int) -> dict[str, Any]:
    """Of a large graph: bytes of the device before a run, and the most held in it."""
    return {
        "store and snapshot, GiB": before / 2**30, "most held, GiB": held / 2**30,
        "bytes an edge": (held - before) / edges,
    }  # fmt: skip


def real(name: str, device: str) -> Snapshot:
    edges = datasets.load(name)
    return undirected(edges.src, edges.dst, device)


def undirected(src: Array, dst: Array, device: str) -> Snapshot:
    graph = lpma.Graph(directed=False, weight_dtype=None, times=False, device=device)
    apart = src != dst
    graph.insert(src[apart], dst[apart])
    return graph.snapshot()


def bare(s: Snapshot) -> Snapshot:
    """The same arrays without the views that algorithms left on them."""
    return s._with()


def on_host(s: Snapshot) -> Snapshot:
    """The same graph on the host, without views."""
    return s._with(**{name: to_host(getattr(s, f"_{name}")) for name in ARRAYS})

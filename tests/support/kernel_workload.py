"""What programs do, in small: a run of this calls every kernel that the lists are to have.

The papers' own programs (`method=`) are left out: they are compiled where they are chosen.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx
import numpy as np
import numpy.typing as npt

import algorithms
import lpma
from algorithms.networkx import backend
from algorithms.pagerank import cpu as pagerank
from algorithms.sharded import split
from ingest.cluster import routing
from ingest.cluster.owners import Ownership, Spread, owners_in
from ingest.datasets import generators
from ingest.feed.content import digest_of_graph
from ingest.formats import kafka_batches
from ingest.formats.encode import encode_row, encode_updates
from ingest.formats.records import decode
from ingest.formats.row_reader import RowReader
from ingest.registry import avro_rows
from ingest.types import Partition, Values
from lpma import Columns, Kind
from lpma.batch.columns import QUERIES
from lpma.cpu import id_kernels, pieces, staging_kernels
from lpma.cpu.instructions import SEMAPHORE
from lpma.cpu.staging_words import SLOT
from lpma.cuda.library import by_numba
from lpma.names import Names, column_of
from lpma.snapshot.stored import StoredGraph
from tests.support.driver_stand_in import Library

Array = npt.NDArray[Any]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"predecessors": True, "strategy": "bottom-up", "global_merge": "never", "segment_size": 2},
    {"predecessors": True, "strategy": "top-down", "global_merge": "never", "segment_size": 4},
    {"directed": False, "weight_dtype": "float64", "segment_size": 64},
    {"directed": False, "weight_dtype": None, "times": False, "strategy": "top-down"},
    {"weight_dtype": None, "strategy": "bottom-up", "global_merge": "never"},
    {"times": False, "weight_dtype": "float64", "predecessors": True, "directed": False},
]
SIZES = (1, 20, 300, 3_000, 12_000, 40_000, 150_000)


def run() -> None:
    for options in OPTIONS:
        use_store(lpma.Graph(device="cpu", **options))
    use_ids_far_apart()
    use_staging()
    use_algorithms()
    use_stream()
    with patch.object(pieces, "FEW", 0), patch.object(pagerank, "CACHED", 0):
        use_algorithms()  # as in large graphs


def use_staging() -> None:
    """What a store on a device calls: a board with no job, and a driver that does nothing."""
    board, memory = np.zeros(SLOT + 1, np.int64), np.zeros(SEMAPHORE, np.uint8)
    semaphore = memory.ctypes.data
    staging_kernels.prepare(semaphore)
    staging_kernels.begin(board, 0, semaphore, 0)
    staging_kernels.stage(board, 0, 0)
    board[-1] = 1
    staging_kernels.serve(board, semaphore)
    staging_kernels.stage_alone(board, 0)
    library = Library()
    calls = by_numba(library)
    calls.launch(0, 1, 1, 0, 0, 0), calls.launch_together(0, 1, 1, 0, 0, 0)
    calls.record(0, 0), calls.wait(0, 0), calls.follow(0, 0, 0)
    calls.copy(0, 0, 0, 0), calls.fill(0, 0, 0, 0), calls.stream_done(0, 600, 0)
    word = board.ctypes.data
    calls.look(word, word, 1, 0, 1), calls.look_apart(word, word, 1, 0, 1)
    id_kernels.ids(board), id_kernels.ids(board.astype(np.uint32))


# -- the store ------------------------------------------------------------------------------------


def use_store(g: lpma.Graph) -> None:
    """Batches of all sizes and kinds, with columns of all forms, and all queries."""
    rng = np.random.default_rng(1)
    for n in SIZES:
        for columns in _forms(rng, n):
            g.apply(columns)
        watch = lpma.Watch()
        g.apply(_mixed(rng, n, g.has_predecessors), watch)
        _ = watch.changes
        u, v = rng.integers(0, 2_000, (2, min(n, 5_000)))
        g.edges(u, v), g.successors(u), g.degree(u), g.has_vertices(u), g.hops(u[:20], 2)
        g.has_vertices(u), 5_000 in g  # the first call scans, the next one counts
        g.successors_after(u[0])
        if g.has_predecessors:
            g.predecessors(u)
        g.insert(1, 2)
        g.delete(1, 2)
        g.add_vertices(3)
        if g.has_times:
            g.expire(n // 16)
        g.has_edge(1, 2), g.edge(1, 2), g.neighbors(1), g.degree(1)
        g.snapshot(), g.snapshot(compact=True), g.num_vertices, g.changes(0)
        if g.has_times:
            g.snapshot(since=n // 16, half_life=n + 1)
    g.check()
    digest_of_graph(g)
    with tempfile.TemporaryDirectory() as directory:
        g.save(Path(directory) / "graph")
        lpma.Graph.load(Path(directory) / "graph", "cpu").check()
        StoredGraph(Path(directory) / "graph").snapshot().write_csv(Path(directory) / "edges.csv")
    whole = g.snapshot()
    src = np.repeat(np.arange(whole.num_rows), np.diff(whole.indptr))
    for part in np.array_split(np.arange(len(src)), 5):  # and shrink
        g.delete(src[part], whole.indices[part])
    g.remove_vertices([1, 2, 3])
    g.check()


def use_ids_far_apart() -> None:
    g = lpma.Graph(device="cpu")
    g.insert(np.arange(5_000) << 18, np.arange(5_000) << 19)
    g.snapshot(compact=True), g.num_vertices


def _forms(rng: np.random.Generator, n: int) -> Iterator[Columns]:
    """Batches of n updates whose columns are full, absent, of one value, read-only, wide."""
    src, dst = rng.integers(0, 1 << 11, (2, n))
    kind = (rng.random(n) < 0.2).astype(np.uint8)
    weight = rng.integers(-4, 20, n) / 4
    yield Columns.edges(Kind.INSERT, src.astype(np.uint32), dst.astype(np.uint32), 1.0, None)
    yield Columns.edges(Kind.INSERT, src, dst, weight.astype(np.float32), np.arange(n))
    yield Columns.edges(Kind.INSERT, src.tolist(), int(dst[0]), weight, 5)
    yield lpma.Batch.from_columns(kind, src, dst, weight, np.arange(n))
    yield Columns.edges(Kind.SET, src, dst, weight, np.arange(n))
    yield Columns.edges(Kind.DELETE, src[: n // 2 + 1], dst[: n // 2 + 1], None, None)
    yield decode(encode_updates(src, dst, weight, np.arange(n), kind))
    yield decode(encode_updates(dst, src))
    yield Columns.edges(Kind.ADD_VERTEX, src, None, None, None)
    yield Columns.edges(Kind.REMOVE_VERTEX, src[:3], None, None, None)


def _mixed(rng: np.random.Generator, n: int, predecessors: bool) -> Columns:
    queries = list(QUERIES)
    if not predecessors:
        queries.remove(Kind.PREDECESSORS)
    kinds = [Kind.INSERT] * 40 + [Kind.SET] * 8 + [Kind.DELETE] * 8
    kinds += [Kind.ADD_VERTEX, Kind.REMOVE_VERTEX]
    kind = rng.choice(kinds + queries, n).astype(np.uint8)
    src, dst = rng.integers(0, 1 << 11, (2, n))
    dst[kind == Kind.HOPS] = 1
    return lpma.Batch.from_columns(kind, src, dst, np.ones(n), np.arange(n))


# -- algorithms -----------------------------------------------------------------------------------


def use_algorithms() -> None:
    """Every public function, on a small graph and on one large enough for several threads."""
    for vertices, edges in ((60, 400), (4_000, 40_000)):
        src, dst = generators.rmat(vertices.bit_length(), edges, seed=1)
        for directed in (True, False):
            g = lpma.Graph(directed, device="cpu")
            g.insert(src, dst)
            analyse(g.snapshot())
            for _ in range(2):  # followed by snapshots after small batches
                g.delete(src[:9], dst[:9])
                analyse(g.snapshot())
                g.insert(src[:9], dst[:9])
                analyse(g.snapshot())
            analyse_shards(g.snapshot())
        matrix = g.snapshot().to_scipy()
        analyse(matrix)
        algorithms.shortest_path_tree(matrix.astype(np.float64), int(matrix.indices[0]))
        analyse((matrix.indptr, matrix.indices))
    _bicliques()
    _track()
    use_networkx_backend()


def analyse(s: Any) -> None:
    algorithms.core_numbers(s)
    algorithms.k_core(s, 2)
    algorithms.triangle_count(s)
    algorithms.triangles(s)
    algorithms.edge_support(s)
    algorithms.truss_numbers(s)
    algorithms.k_truss(s, 3)
    algorithms.connected_components(s)
    algorithms.strongly_connected_components(s)
    algorithms.bfs(s, int(indices_of(s)[0]))
    algorithms.pagerank(s)
    algorithms.pagerank(s, personalization={int(indices_of(s)[0]): 1.0})
    if not isinstance(s, tuple):
        algorithms.pagerank(s, weighted=True)
        algorithms.pagerank(s, weighted=True, personalization={int(indices_of(s)[0]): 1.0})
        algorithms.shortest_path_tree(s, int(indices_of(s)[0]))
    pair = indices_of(s)[:1], indices_of(s)[-1:]
    algorithms.jaccard(s, *pair)
    algorithms.similar(s, int(pair[0][0]), 3)
    for model in ("component", "core", "truss"):
        algorithms.diversity(s, model, 3)
        algorithms.top_diversity(s, model, 3, 3)


def analyse_shards(s: lpma.Snapshot) -> None:
    """The same over shards, as far as there are programs; and one shard alone."""
    for shards in (1, 3):
        spread = algorithms.ShardedSnapshot.of(split(s, shards))
        algorithms.core_numbers(spread)
        algorithms.triangle_count(spread)
        algorithms.connected_components(spread)
        algorithms.bfs(spread, int(s.indices[0]))
        algorithms.pagerank(spread)
        algorithms.pagerank(spread, weighted=True)
        algorithms.diversity(spread, "component", 3)
        spread.gather(), spread.hops([0], [2])


def use_networkx_backend() -> None:
    """The kernels that only this backend calls, and the conversion."""
    for scale, edges in ((6, 400), (12, 40_000)):
        for kind in (networkx.Graph, networkx.DiGraph):
            src, dst = generators.rmat(scale, edges, seed=1)
            graph = kind(zip(src.tolist(), dst.tolist(), strict=True))
            converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
            node = converted.labels[0]
            backend.clustering(converted)
            backend.ancestors(converted, node)
            list(backend.bfs_edges(converted, node))
            if kind is networkx.Graph:
                backend.square_clustering(converted)
                list(backend.adamic_adar_index(converted, [(node, v) for v in graph]))


def indices_of(s: Any) -> Array:
    return np.asarray(s[1] if isinstance(s, tuple) else s.indices)


def _bicliques() -> None:
    rng = np.random.default_rng(2)
    for left, right, edges in ((12, 9, 40), (300, 200, 6_000)):
        g = lpma.Graph(directed=False, device="cpu")
        g.insert(rng.integers(0, left, edges), left + rng.integers(0, right, edges))
        s = g.snapshot()
        for p, q in ((1, 2), (2, 2), (2, 3), (3, 3)):
            algorithms.count_bicliques(s, p, q)
        algorithms.count_all_bicliques(s, 3, 3)
        list(algorithms.list_bicliques(s, 2, 2, limit=5))


def _track() -> None:
    rng = np.random.default_rng(3)
    figures = ["core", "triangles", "components", "pagerank"]
    for directed, apart in ((True, 0), (False, 0), (False, 400)):
        g = lpma.Graph(directed, device="cpu")
        src, dst = rng.integers(0, 300, (2, 3_000))
        g.insert(src, apart + dst)
        tracker = algorithms.Tracker(g, ["butterflies"] if apart else figures)
        cores = algorithms.Tracker(g, "core")
        for n in (1, 50, 500):
            u, v = rng.integers(0, 320, (2, n))
            g.insert(u, apart + v)
            tracker.update()
            g.delete(src[:n], apart + dst[:n])
            tracker.update()
    for _ in range(6):  # rows that grow until the lists of core numbers are packed anew
        u, v = rng.integers(0, 320, (2, 700))
        g.insert(u, apart + v)
        g.delete(src[:9], apart + dst[:9])
        cores.update()


# -- the stream -----------------------------------------------------------------------------------


def _spread(names: Names) -> None:
    """Rows for the partitions of their owners, and what a shard makes of them."""
    ownership = Ownership(1)
    ids = np.arange(9, dtype=np.uint32)
    for kind in (ids.astype(np.uint8) % 2, None):
        for wide in (np.uint32, np.uint64):
            data = encode_updates(ids.astype(wide), ids, ids / 2, ids.astype(np.int64), kind)
            bare = encode_updates(ids.astype(wide), ids, ids.astype(np.float32), None, kind)
            for batch in (decode(data), decode(bare)):
                ownership.owned(Partition("", 0), batch, None)
                for direction in routing.Direction:
                    list(routing.split(batch, batch.src, batch.dst, 3, direction))
                    own = [column.copy() for column in (batch.kind, batch.src, batch.dst)]
                    moved = Columns(own[0], own[1], own[2], None, None)
                    list(routing.split(moved, moved.src, moved.dst, 3, direction))
                ownership.owned(Partition("", 0), moved, names)
                ownership.owned(Partition("", 0), moved, None)
    for column in (ids.astype(np.uint64), frozen(ids.astype(np.uint64)), ids, frozen(ids)):
        spread = Spread(owners_in(column, 2), None, 2)
        spread.moved(column, column)


def frozen(column: Array) -> Array:
    column = column.copy()
    column.flags.writeable = False
    return column


def use_stream() -> None:
    """Rows of msgpack, batches of Kafka's, names of vertices, streams made up."""
    list(RowReader(None, False).stretches(Values.of([encode_row(1, 2)])))
    avro_rows.read_rows(Values.of([bytes(9)]), 5, np.array([[avro_rows.END, 0, 0, 0]]), False)
    record = bytes([14, 0, 0, 0, 1, 2, 65, 0])
    list(kafka_batches.values(record, 0, 1, 0, 0))
    names = Names()
    names.assign(column_of([f"name {i}" for i in range(2_000)], "names"))
    names.of(range(2_000))
    names.assign(column_of("name", "names").stretched(3))  # by codes
    _spread(names)
    names.shrink(0)
    generators.interactions(300, 2_000, deletions=0.1, mean_gap_ms=0)
    generators.rmat(6, 100, seed=1)

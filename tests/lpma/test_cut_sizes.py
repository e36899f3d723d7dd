"""Every size at which the store's doors cut what passes is 3 here: what comes through is the same.

In: data frames and readers of Arrow, files of graphs. Out: exports of every form, iteration, names.
The oracle is the same door with its own sizes, whose results other tests hold to plain models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

import lpma
from lpma import graph, sharding
from lpma.file import container
from lpma.interop import frames
from lpma.names import dictionary
from lpma.snapshot.export import edges as exported
from tests.support.oracles import assert_same

CUT = 3
SIZES = [
    (exported, "CHUNK_EDGES"), (frames, "GROUP_ROWS"), (frames, "MOST_ROWS"),
    (graph, "CHUNK"), (sharding, "_BLOCK_ROWS"), (container, "_READ_BYTES"),
    (dictionary, "MOST_KNOWN"),
]  # fmt: skip


@contextmanager
def cut_at_three() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name in SIZES:
            patch.setattr(module, name, CUT)
        yield


@pytest.fixture(params=["ids", "names"])
def named(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "names")


@pytest.fixture(params=["directed", "undirected"])
def directed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "directed")


def columns(named: bool) -> dict[str, Any]:
    """Edges with all columns, of which some repeat."""
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 9, (2, 40))
    called = np.array([f"v {v}" if v % 2 else v for v in range(9)], object)
    ends = {"src": called[src], "dst": called[dst]} if named else {"src": src, "dst": dst}
    return {**ends, "weight": rng.integers(1, 9, 40) / 4, "time": np.arange(40)}


def made(device: str, named: bool, directed: bool = True) -> lpma.Graph:
    g = lpma.Graph(device=device, names=named, directed=directed)
    c = columns(named)
    g.insert(c["src"], c["dst"], c["weight"], time=c["time"])
    g.add_vertices("alone" if named else 12)
    return g


WRITERS = {
    "csv": lambda s, path: s.write_csv(path),
    "parquet": lambda s, path: s.write_parquet(path),
    "npz": lambda s, path: s.write_npz(path),
    "mtx": lambda s, path: s.write_matrix_market(path),
    "graphml": lambda s, path: s.write_graphml(path),
    "gexf": lambda s, path: s.write_gexf(path),
}


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("form", WRITERS)
def test_an_export_is_the_same_file(
    tmp_path: Path, form: str, named: bool, directed: bool, compact: bool
) -> None:
    s = made("cpu", named, directed).snapshot(compact=compact)
    whole, cut = tmp_path / f"whole.{form}", tmp_path / f"cut.{form}"
    WRITERS[form](s, whole)
    with cut_at_three():
        WRITERS[form](s, cut)
    if form == "parquet":  # which has a row group for each chunk
        assert parquet.read_table(cut).equals(parquet.read_table(whole))
        assert parquet.ParquetFile(cut).num_row_groups > 3
    else:
        assert cut.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("table", ["to_arrow", "to_pandas"])
def test_a_table_is_the_same(device: str, table: str, named: bool, directed: bool) -> None:
    s = made(device, named, directed).snapshot()
    whole = getattr(s, table)()
    with cut_at_three():
        assert getattr(s, table)().equals(whole)


def test_iteration_and_owners_are_the_same(device: str, named: bool) -> None:
    g = made(device, named)
    whole = list(g)
    asked = np.array(whole, object if named else np.uint32)
    owned = sharding.owners_of(asked, 4).tolist()
    with cut_at_three():
        assert list(g) == whole
        assert sharding.owners_of(asked, 4).tolist() == owned
        for vertex in [*whole, *whole[::-1]]:  # more than are kept of those asked for lately
            assert vertex in g
            if g.names is not None:
                assert g.names.of([g.names.find(vertex)]).tolist() == [vertex]


def test_queries_are_the_same(device: str, named: bool, directed: bool) -> None:
    g = made(device, named, directed)
    vertices = list(g)
    batch = lpma.Batch()
    for u in vertices:
        batch.hops(u, 2)
        batch.successors(u)
    whole = g.successors(vertices), [g.apply(batch)[i] for i in range(2 * len(vertices))]
    with cut_at_three():
        answers = g.apply(batch)
        assert_same(g.successors(vertices), whole[0])
        assert_same([answers[i] for i in range(len(answers))], whole[1])


def test_a_saved_graph_is_the_same(tmp_path: Path, device: str, named: bool) -> None:
    g = made(device, named)
    g.save(tmp_path / "g.lpma")
    with cut_at_three():
        loaded = lpma.Graph.load(tmp_path / "g.lpma", device=device)
    loaded.check()
    assert list(loaded) == list(g)
    for name, column in g.snapshot().to_numpy().items():
        assert_same(loaded.snapshot().to_numpy()[name], column, name)


def readers(table: pyarrow.Table) -> dict[str, Any]:
    """The same rows as a frame, a table of several chunks and a reader of batches."""
    chunks = pyarrow.concat_tables([table.slice(first, 7) for first in range(0, len(table), 7)])
    return {"frame": table.to_pandas(), "table": chunks,
            "reader": chunks.to_reader(max_chunksize=5)}  # fmt: skip


@pytest.mark.parametrize("form", ["frame", "table", "reader"])
def test_a_frame_makes_the_same_graph(device: str, form: str, named: bool) -> None:
    c = columns(named)
    if named:  # a column of Arrow's has one type
        c["src"], c["dst"] = (np.array([str(v) for v in c[end]], object) for end in ("src", "dst"))
    frame = pandas.DataFrame(c)
    expected = lpma.Graph(device=device, names=named, weight_dtype="float64")
    expected.insert(c["src"], c["dst"], c["weight"], time=c["time"])
    given = readers(pyarrow.Table.from_pandas(frame, preserve_index=False))[form]
    roles = {"source": "src", "target": "dst", "weight": "weight", "time": "time"}
    with cut_at_three():
        g = lpma.from_dataframe(given, **roles, device=device)
    g.check()
    assert list(g) == list(expected)
    assert g.version > 1, "it came in several batches"
    for name, column in expected.snapshot().to_numpy().items():
        assert_same(g.snapshot().to_numpy()[name], column, name)

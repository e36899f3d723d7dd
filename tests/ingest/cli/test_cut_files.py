"""Files of every form, cut wherever a reader or a batch cuts them.

What a form holds is read by plain Python, a row at a time, and added up in a dictionary. Every size
at which rows are cut on their way into a graph is 3 here; one million and more pass it once as they
are. See tests/lpma/test_cut_columns.py for the values themselves.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from pyarrow.csv import write_csv as write_text

import ingest
import lpma
from ingest.cli import _edges
from ingest.sources.files import opening, tables
from lpma.snapshot.export import edges as exported
from tests.support.command_line import document
from tests.support.contents import check_counts, edges_of

Row = tuple[int | str, int | str, float, int]
Graph = dict[tuple[Any, Any], tuple[float, int]]  # an edge's ends → its weight and its time

COUNT = 40  # rows of a file


class Cut(NamedTuple):
    """Where rows are cut: blocks of text, in bytes; blocks of arrays and tables, in rows; batches.
    None: where users have it. A block cuts no row of text: one of 3 bytes is one row."""

    text: int | None
    tables: int | None
    batches: int | None


CUTS = {
    "in blocks": Cut(3, 3, None),
    "in batches": Cut(None, None, 3),
    "in both": Cut(200, 5, 3),
}


@pytest.fixture(params=CUTS.values(), ids=list(CUTS))
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cut:
    cut: Cut = request.param
    for module, name, size in (
        (opening, "BLOCK_BYTES", cut.text), (tables, "BATCH_ROWS", cut.tables),
        (exported, "CHUNK_EDGES", cut.tables), (_edges, "BATCH_SIZE", cut.batches),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, getattr(module, name) if size is None else size)
    return cut


def rows(named: bool) -> list[Row]:
    """Rows that meet few vertices again and again."""
    rng = np.random.default_rng(4)
    ends = rng.integers(0, 12, (COUNT, 2)).tolist()
    if named:
        called = [f"name {v}" if v % 3 else f"ü{v}" for v in range(12)]
        ends = [[called[u], called[v]] for u, v in ends]
    weights = (rng.integers(1, 9, COUNT) / 4).tolist()
    return [(u, v, w, 1000 + t) for t, ((u, v), w) in enumerate(zip(ends, weights, strict=True))]


# -- forms: how each is written, and how plain Python reads it -------------------------------------


def write_csv(path: Path, table: list[Row]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("src", "dst", "weight", "time"), *table])


def read_csv(path: Path) -> Iterator[tuple[Any, ...]]:
    with open(path, newline="") as file:
        yield from ((r["src"], r["dst"], r["weight"], r["time"]) for r in csv.DictReader(file))


def write_gz(path: Path, table: list[Row]) -> None:
    plain = path.with_name("plain.csv")
    write_csv(plain, table)
    path.write_bytes(gzip.compress(plain.read_bytes()))


def read_gz(path: Path) -> Iterator[tuple[Any, ...]]:
    with gzip.open(path, "rt", newline="") as file:
        yield from ((r["src"], r["dst"], r["weight"], r["time"]) for r in csv.DictReader(file))


def write_json(path: Path, table: list[Row]) -> None:
    fields = "src", "dst", "weight", "time"
    lines = [json.dumps(dict(zip(fields, row, strict=True))) for row in table]
    path.write_text("\n".join(lines) + "\n")


def read_json(path: Path) -> Iterator[tuple[Any, ...]]:
    for line in path.read_text().splitlines():
        found = json.loads(line)
        yield found["src"], found["dst"], found["weight"], found["time"]


def write_parquet(path: Path, table: list[Row]) -> None:
    columns = dict(zip(("src", "dst", "weight", "time"), zip(*table, strict=True), strict=True))
    parquet.write_table(pyarrow.table({n: list(c) for n, c in columns.items()}), path,
                        row_group_size=7)  # fmt: skip


def read_parquet(path: Path) -> Iterator[tuple[Any, ...]]:
    for row in parquet.read_table(path).to_pylist():
        yield row["src"], row["dst"], row["weight"], row["time"]


def write_npz(path: Path, table: list[Row]) -> None:
    src, dst, weight, time = (np.array(column) for column in zip(*table, strict=True))
    np.savez(path, src=src, dst=dst, weight=weight, time=time)


def read_npz(path: Path) -> Iterator[tuple[Any, ...]]:
    with np.load(path) as file:
        columns = [file[name].tolist() for name in ("src", "dst", "weight", "time")]
    yield from zip(*columns, strict=True)


def write_export(path: Path, table: list[Row]) -> None:
    """The CSR that `lpma export` writes, whose edges are read back in chunks."""
    graph = lpma.Graph(device="cpu", names=isinstance(table[0][0], str))
    for u, v, w, t in table:
        graph.insert(u, v, w, time=t)
    graph.snapshot().write_npz(path)


def read_export(path: Path) -> Iterator[tuple[Any, ...]]:
    s = lpma.Snapshot.read_npz(path)
    called = range(s.num_rows) if s.names is None else s.names.of(range(s.num_rows)).tolist()
    assert s.weights is not None
    assert s.times is not None
    for u in range(s.num_rows):
        for at in range(int(s.indptr[u]), int(s.indptr[u + 1])):
            v = int(s.indices[at])
            yield called[u], called[v], float(s.weights[at]), int(s.times[at])


def write_matrix(path: Path, table: list[Row]) -> None:
    head = f"%%MatrixMarket matrix coordinate real general\n% a comment\n12 12 {len(table)}\n"
    path.write_text(head + "".join(f"{int(u) + 1} {int(v) + 1} {w}\n" for u, v, w, _ in table))


def read_matrix(path: Path) -> Iterator[tuple[Any, ...]]:
    for line in path.read_text().splitlines()[3:]:
        u, v, w = line.split()
        yield int(u) - 1, int(v) - 1, w, None


def write_snap(path: Path, table: list[Row]) -> None:
    """Blanks between the fields, so that no name may have any."""
    lines = [f"{u}  {v} {w}   {t}\n" for u, v, w, t in table]
    path.write_text("# Nodes: 12\n# src dst weight time\n" + "".join(lines).replace("name ", "n"))


def read_snap(path: Path) -> Iterator[tuple[Any, ...]]:
    for line in path.read_text().splitlines()[2:]:
        yield tuple(line.split())


Form = tuple[str, Callable[[Path, list[Row]], None], Callable[[Path], Iterator[tuple[Any, ...]]]]
FORMS: dict[str, Form] = {
    "csv": ("own.csv", write_csv, read_csv),
    "gz": ("own.csv.gz", write_gz, read_gz),
    "JSON lines": ("own.jsonl", write_json, read_json),
    "Parquet": ("own.parquet", write_parquet, read_parquet),
    "npz": ("own.npz", write_npz, read_npz),
    "export": ("export.npz", write_export, read_export),
    "mtx": ("own.mtx", write_matrix, read_matrix),
    "SNAP text": ("own.txt", write_snap, read_snap),
}


def read_plainly(form: str, path: Path, named: bool) -> Graph:
    found: Graph = {}
    for u, v, weight, time in FORMS[form][2](path):
        ends = (u, v) if named and form != "mtx" else (int(u), int(v))
        before, _ = found.get(ends, (0.0, 0))
        found[ends] = before + float(weight), 0 if time is None else int(time)
    return found


def contents(graph: lpma.Graph, timed: bool = True) -> Graph:
    """The edges of a graph by what its vertices are called."""
    graph.check()
    found = edges_of(graph.snapshot())
    return found if timed else without_times(found)


def without_times(graph: Graph) -> Graph:
    return {ends: (weight, 0) for ends, (weight, _) in graph.items()}


# -- every form, cut at 3 --------------------------------------------------------------------------


def by_load(path: Path, named: bool, out: Path, cut: Cut) -> lpma.Graph:
    said = ["--names"] if named else ["--no-names"]
    sizes = [] if cut.batches is None else ["--batch-size", cut.batches]
    document("load", path, out, "--directed", *said, *sizes)
    return lpma.Graph.load(out, device="cpu")


def by_run(path: Path, named: bool, out: Path, cut: Cut) -> lpma.Graph:
    """`lpma run` computes of such a graph, which `load_graph` makes."""
    from ingest.cli._console import Screen
    from ingest.cli._file_options import FileOptions

    options = FileOptions(names=named)
    graph, _ = _edges.load_graph(str(path), True, options, "cpu", Screen(quiet=True))
    return graph


def by_stream(path: Path, named: bool, out: Path, cut: Cut) -> lpma.Graph:
    graph = lpma.Graph(device="cpu", names=named)
    source = ingest.FileSource(path, names=named, chunk=cut.tables or 50_000)
    with ingest.Pipeline(source, graph, batch_size=cut.batches or 100_000) as pipeline:
        pipeline.run()
    return graph


def by_columns(path: Path, named: bool, out: Path, cut: Cut) -> lpma.Graph:
    """What `read_edges` gives, applied by the caller, who cuts it too."""
    graph = lpma.Graph(device="cpu", names=named)
    for columns in ingest.read_edges(path, names=named):
        size = cut.batches or len(columns)
        for first in range(0, len(columns), size):
            part = columns.rows(first, min(first + size, len(columns)))
            graph.insert(part.src, part.dst, 1.0 if part.weight is None else part.weight, part.time)
    return graph


@pytest.mark.parametrize("door", [by_load, by_run, by_stream, by_columns])
@pytest.mark.parametrize("named", [False, True], ids=["integers", "names"])
@pytest.mark.parametrize("form", FORMS)
def test_a_file_makes_one_graph_wherever_it_is_cut(
    tmp_path: Path, cut: Cut, form: str, named: bool, door: Any
) -> None:
    name, write, _ = FORMS[form]
    path = tmp_path / name
    table = rows(named and form != "mtx")
    write(path, table)
    expected = read_plainly(form, path, named)
    timed = form != "mtx" and door is not by_run
    if not timed:
        expected = without_times(expected)
    graph = door(path, named, tmp_path / "g.lpma", cut)
    assert contents(graph, timed) == expected
    if named:
        assert graph.names is not None
        vertices = {end for ends in expected for end in ends}
        assert set(graph) >= vertices
        assert len(graph.names) == len(set(graph)), "an id without a vertex was given"


# -- more rows than a batch takes, as it is --------------------------------------------------------

MANY = 1_000_000 + 70_001  # rows: more than a batch of `lpma load` has, and its end within a block
VERTICES = 60_000


def many_pairs() -> Any:
    """int64[2, MANY]: ends of rows by number, of which many repeat."""
    return np.random.default_rng(9).integers(0, VERTICES, (2, MANY)) // 2 * 2


def write_many(path: Path, pairs: Any) -> None:
    """The same rows by name: "v" and the number."""
    called = pyarrow.array([f"v{v}" for v in range(VERTICES)])
    ends = zip("ab", pairs, strict=True)
    table = pyarrow.table({column: called.take(pyarrow.array(end)) for column, end in ends})
    (parquet.write_table if path.suffix == ".parquet" else write_text)(table, path)


@pytest.mark.parametrize("name", ["own.csv", "own.parquet"])
def test_a_file_of_names_with_more_rows_than_a_batch(tmp_path: Path, name: str) -> None:
    """Compared with what NumPy makes of the numbers by sorting."""
    pairs, path = many_pairs(), tmp_path / name
    write_many(path, pairs)
    found = document("load", path, tmp_path / "g.lpma", "--names", "--source", "a", "--target", "b")
    assert (found["operations"], found["edges"]) == (
        MANY,
        len(np.unique(pairs[0] * VERTICES + pairs[1])),
    )
    assert found["vertices"] == len(np.unique(pairs))
    s = lpma.Graph.load(tmp_path / "g.lpma", device="cpu").snapshot()
    assert s.names is not None
    check_counts(s, pairs, VERTICES)


def test_run_takes_a_file_of_names_with_more_rows_than_a_batch(tmp_path: Path) -> None:
    pairs, path = many_pairs(), tmp_path / "own.parquet"
    write_many(path, pairs)
    found = document("run", "core", path, "--names", "--source", "a", "--target", "b")
    assert found["vertices"] == len(np.unique(pairs))

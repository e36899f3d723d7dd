"""More rows than anything takes at once, 2.5 million, through every form of file and topic, as
integers and as names; compared with what NumPy makes of the numbers by sorting.

Here each size at which rows are cut is as users have it: test_cut_files.py and test_cut_streams.py
have all of them small."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pytest
from pyarrow import csv, parquet

import ingest
import lpma
from ingest import Fields, KafkaSink, KafkaSource, Pipeline, SqliteLog
from tests.support.command_line import document
from tests.support.contents import check_counts
from tests.support.edge_files import zstd

pytestmark = pytest.mark.nightly

ROWS, VERTICES = 2_500_000, 200_000
Pairs = npt.NDArray[np.int64]
forms = pytest.mark.parametrize("named", [False, True], ids=["integers", "names"])


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    """int64[2, ROWS]: the ends of edges, of which many repeat."""
    return np.random.default_rng(9).integers(0, VERTICES, (2, ROWS)) // 4 * 4


@pytest.fixture(scope="module")
def names() -> npt.NDArray[np.object_]:
    return np.array([f"v{v}" for v in range(VERTICES)], object)


def check(graph: lpma.Graph, pairs: Pairs) -> None:
    s = graph.snapshot()
    assert s.num_vertices == len(np.unique(pairs))
    check_counts(s, pairs, VERTICES)


# Files --------------------------------------------------------------------------------------


def as_csv(table: pyarrow.Table) -> bytes:
    sink = pyarrow.BufferOutputStream()
    csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def as_lines(table: pyarrow.Table, line: str) -> bytes:
    ends = (column.to_pylist() for column in table.columns)
    return "".join(line.format(u, v) for u, v in zip(*ends, strict=True)).encode()


def as_json(table: pyarrow.Table) -> bytes:
    is_text = pyarrow.types.is_string(table.schema.field("src").type)
    value = '"{}"' if is_text else "{}"
    return as_lines(table, f'{{{{"src": {value}, "dst": {value}}}}}\n')


def as_parquet(table: pyarrow.Table) -> bytes:
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


FILES: dict[str, Callable[[pyarrow.Table], bytes]] = {
    "own.csv": as_csv,
    "own.csv.gz": lambda table: gzip.compress(as_csv(table), 1),
    "own.csv.zst": lambda table: zstd(as_csv(table)),
    "own.txt": lambda table: b"# SNAP\n" + as_lines(table, "{}\t{}\n"),
    "own.jsonl": as_json,
    "own.parquet": as_parquet,
}


@forms
@pytest.mark.parametrize("name", FILES)
def test_of_a_file(tmp_path: Path, pairs: Pairs, names: Any, name: str, named: bool) -> None:
    ends = [pyarrow.array(names[end] if named else end) for end in pairs]
    path = tmp_path / name
    path.write_bytes(FILES[name](pyarrow.table(ends, ["src", "dst"])))
    said = "--names" if named else "--no-names"
    found = document("load", path, tmp_path / "g.lpma", "--directed", said)
    assert found["operations"] == ROWS
    check(lpma.Graph.load(tmp_path / "g.lpma", device="cpu"), pairs)


def test_of_arrays_in_a_file(tmp_path: Path, pairs: Pairs) -> None:
    np.savez(tmp_path / "own.npz", src=pairs[0], dst=pairs[1])
    found = document("load", tmp_path / "own.npz", tmp_path / "g.lpma", "--directed")
    assert found["operations"] == ROWS
    check(lpma.Graph.load(tmp_path / "g.lpma", device="cpu"), pairs)


def test_of_a_matrix(tmp_path: Path, pairs: Pairs) -> None:
    """Whose rows all are vertices."""
    head = f"%%MatrixMarket matrix coordinate real general\n{VERTICES} {VERTICES} {ROWS}\n"
    ends = [pyarrow.array(end + 1) for end in pairs]
    lines = as_lines(pyarrow.table(ends, ["src", "dst"]), "{} {} 1\n")
    (tmp_path / "own.mtx").write_bytes(head.encode() + lines)
    document("load", tmp_path / "own.mtx", tmp_path / "g.lpma", "--directed")
    graph = lpma.Graph.load(tmp_path / "g.lpma", device="cpu")
    assert graph.snapshot().num_vertices == VERTICES
    graph.remove_vertices(np.setdiff1d(np.arange(VERTICES), pairs))
    check(graph, pairs)


# Topics -------------------------------------------------------------------------------------


def in_columns(src: Any, dst: Any, named: bool) -> Iterator[bytes]:
    for first in range(0, ROWS, 20_001):
        some = slice(first, first + 20_001)
        yield ingest.encode_updates(src[some], dst[some], names=named)


def in_rows(src: Any, dst: Any, named: bool) -> Iterator[bytes]:
    for u, v in zip(src.tolist(), dst.tolist(), strict=True):
        yield ingest.encode_row(u, v, names=named)


def in_json(src: Any, dst: Any, named: bool) -> Iterator[bytes]:
    value = '"{}"' if named else "{}"
    line = f'{{{{"src": {value}, "dst": {value}}}}}'
    for u, v in zip(src.tolist(), dst.tolist(), strict=True):
        yield line.format(u, v).encode()


RECORDS: dict[str, Callable[..., Iterator[bytes]]] = {
    "columns": in_columns,
    "rows": in_rows,
    "JSON": in_json,
}


def fill(log: Any, topic: str, records: Iterator[bytes]) -> None:
    while some := list(itertools.islice(records, 10_000)):
        log.produce_many(topic, some)


def read(source: Any, pairs: Pairs, named: bool, records: Any = "msgpack") -> None:
    graph = lpma.Graph(device="cpu", names=named)
    with Pipeline(source, graph, names=named, records=records) as pipeline:
        pipeline.run(until="end")
        assert (pipeline.stats.operations, pipeline.outputs.rejected) == (ROWS, 0)
    check(graph, pairs)


@forms
@pytest.mark.parametrize("form", RECORDS)
def test_of_an_embedded_log(
    tmp_path: Path, pairs: Pairs, names: Any, form: str, named: bool
) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        src, dst = names[pairs] if named else pairs
        fill(log, "updates", RECORDS[form](src, dst, named))
        read(log, pairs, named, Fields("src", "dst") if form == "JSON" else "msgpack")


@forms
def test_of_a_topic_of_kafka(kafka: Any, pairs: Pairs, names: Any, named: bool) -> None:
    topic = kafka.topic(3)
    with KafkaSink(kafka.bootstrap) as sink:
        src, dst = names[pairs] if named else pairs
        fill(sink, topic, in_columns(src, dst, named))
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        read(source, pairs, named)

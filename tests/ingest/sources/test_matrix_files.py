"""Matrix Market and .npz as edge files: every field and symmetry, and what is no graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from ingest import SourceError
from tests.support.edge_files import Write, edges, plain


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market(tmp_path: Path, field: str, symmetry: str) -> None:
    rng = np.random.default_rng(1)
    matrix = scipy.sparse.random_array((30, 30), density=0.1, rng=rng, format="coo")
    matrix.data = np.ceil(matrix.data * 9)
    if symmetry == "symmetric":
        matrix = scipy.sparse.coo_array(matrix + matrix.T)
    path = tmp_path / "m.mtx"
    scipy.io.mmwrite(path, matrix, comment="made here", field=field, symmetry=symmetry)
    weights = np.ones_like(matrix.data) if field == "pattern" else matrix.data
    expected = {(u, v): w for u, v, w in zip(*matrix.coords, weights, strict=True)}
    found = edges(path)
    assert {(x[0], x[1]): x[2] for x in found if isinstance(x, tuple)} == expected
    assert len(found) == len(expected)
    once = {(x[0], x[1]) for x in edges(path, mirror=False) if isinstance(x, tuple)}
    if symmetry == "symmetric":
        assert once == {(u, v) for u, v in expected if u >= v}


@pytest.mark.parametrize(
    "text, message",
    [
        ("1 2\n", "expected '%%MatrixMarket"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n", "coordinate"),
        (
            "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n",
            "cannot be read as a graph",
        ),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 0\n",
            "cannot be read as a graph",
        ),
        ("%%MatrixMarket matrix coordinate real general\n3 3\n", "rows columns entries"),
        ("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 1\n", "cut short"),
        ("", "expected '%%MatrixMarket"),
    ],
)
def test_matrices_that_are_no_graphs(write: Write, text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        edges(write("m.mtx", text))


def test_entries_outside_a_matrix_are_rejected(write: Write) -> None:
    head = "%%MatrixMarket matrix coordinate pattern general\n3 2 4\n"
    found = edges(write("m.mtx", head + "0 1\n1 1\n3 2\n4 1\n"))
    assert found[1:3] == plain((0, 3), (2, 4))  # rows, and then columns
    assert found[0] == found[3] == "src: indices go from 1 to 3"
    (found_there,) = edges(write("m.mtx", head.replace("2 4", "2 1") + "3 3\n"))
    assert found_there == "dst: indices go from 1 to 2"
    one_kind = edges(write("m.mtx", head + "0 1\n1 1\n3 2\n4 1\n"), bipartite=False)
    assert one_kind[1:3] == plain((0, 0), (2, 1))


@pytest.mark.parametrize(
    "text", ["%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 5\n2 3 7\n",
             "p sp 3 2\na 1 2 5\na 2 3 7\n"],
)  # fmt: skip
def test_columns_that_the_format_says(write: Write, text: str) -> None:
    path = write("a.txt", text)
    assert edges(path) == [(0, 1, 5.0, None, 0), (1, 2, 7.0, None, 0)]
    assert edges(path, weight="none") == plain((0, 1), (1, 2))
    with pytest.raises(SourceError, match=r"no column '1': .*says itself"):
        edges(path, source=2, target=1)


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    columns: dict[str, Any] = {"src": np.array([1, 2]), "dst": np.array([3, 4])}
    np.savez(path, **columns)
    assert edges(path) == plain((1, 3), (2, 4))
    np.savez(path, **columns, t=np.array([5, 6]), w=np.array([-1, 2]), kind=np.array([0, 1]))
    assert edges(path) == [(1, 3, -1.0, 5, 0), (2, 4, 2.0, 6, 0)]  # a kind is never guessed
    said = {"source": "src", "target": "dst", "weight": "w", "time": "t", "kind": "kind"}
    assert edges(path, **said) == [(1, 3, -1.0, 5, 0), (2, 4, 2.0, 6, 1)]
    np.savez(path, src=np.array([1, 2**32]), dst=np.array([3, 4]))
    assert edges(path, names=False)[0] == plain((1, 3))[0]
    assert "src: ids" in str(edges(path, names=False)[1])
    for bad in (
        {"src": np.array([1])},
        {"src": np.array([1]), "dst": np.array([1, 2])},
        {"src": np.array([1.5]), "dst": np.array([1])},
        {"src": np.array([1]), "dst": np.array([1]), "t": np.array([0.5])},
        {"src": np.array([None]), "dst": np.array([1])},
    ):
        np.savez(path, **bad)  # type: ignore[arg-type]
        with pytest.raises(SourceError):
            edges(path)
    path.write_bytes(b"PK but not a zip")
    with pytest.raises(SourceError):
        edges(path)


def test_a_cut_archive_is_an_error_not_a_short_stream(write: Write) -> None:
    path = write("a.txt.gz", "".join(f"{i} {i * i}\n" for i in range(50_000)))
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(SourceError, match="cannot be read"):
        edges(path)

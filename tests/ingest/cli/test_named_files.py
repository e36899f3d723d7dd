"""Files whose vertices go by names: read, saved, resumed, and exported with a table of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest.sources.files import opening
from tests.support.command_line import document, run

NAMED = "5 05\n-7 -07\n+5 -0\n18446744073709551615 18446744073709551616\n5.0 1_0\n' \"\n0 a,b\n"
NAMES = [5, "05", -7, "-07", "+5", "-0", 2**64 - 1, str(2**64), "5.0", "1_0", "'", '"', 0, "a,b"]


def names_in(path: Path, **options: Any) -> list[tuple[type, Any]]:
    source = ingest.FileSource(path, names=True, **options)
    found: list[Any] = []
    while polled := source.poll():
        for record in polled:
            assert isinstance(record.value, lpma.Columns), record.value
            for pair in zip(record.value.src.tolist(), record.value.dst.tolist(), strict=True):
                found += pair
    return [(type(name), name) for name in found]


@pytest.mark.parametrize("block", [1, 20, 1 << 20])
def test_a_field_is_the_same_name_whatever_stands_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Integers alone are read by another road than text: both must agree on each field."""
    monkeypatch.setattr(opening, "BLOCK_BYTES", block)
    path = tmp_path / "e.txt"
    path.write_text(NAMED)
    assert names_in(path) == [(type(name), name) for name in NAMES]
    for line in NAMED.splitlines():
        path.write_text(line + "\n")
        first = NAMED.splitlines().index(line) * 2
        assert names_in(path) == [(type(name), name) for name in NAMES[first : first + 2]]


def test_named_csv(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text('"a, b", c \n"5",6\n')
    assert names_in(path, header=False) == [(str, "a, b"), (str, "c"), (int, 5), (int, 6)]
    path.write_text("alice,bob,1.5,10\ncarol,dan,2,20\n")  # no header: numbers say so
    assert [name for _, name in names_in(path)] == ["alice", "bob", "carol", "dan"]
    path.write_text("user,item\ncarol,tea\n")
    assert [name for _, name in names_in(path)] == ["carol", "tea"]
    path.write_text("who,what,weight,how\ncarol,tea,2,x\n")
    with pytest.raises(ingest.SourceError, match=r"--source and --target.*'who', 'what', 'weight'"):
        names_in(path)
    path.write_text("who,what,weight\ncarol,tea,2\n")
    assert [n for _, n in names_in(path)] == ["carol", "tea"]  # the only ones of no known name
    assert [n for _, n in names_in(path, columns="src dst weight")] == ["carol", "tea"]
    path.write_text("a,b\n,b\n" + "x" * 1025 + ",b\n")
    values = ingest.FileSource(path, names=True).poll()
    assert [v.value.reason for v in values[1:]] == [  # type: ignore[union-attr]
        "src: empty", "src: text of 1 to 1024 bytes names a vertex"
    ]  # fmt: skip
    path.write_bytes("müller,a\n".encode("latin-1") + b"b,c\n")
    rejected, _ = ingest.FileSource(path, names=True).poll()
    assert isinstance(rejected.value, ingest.sources.Rejected)
    assert rejected.value.reason == "src: not UTF-8"


def test_named_npz_and_matrix_market(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", src=np.array([2**64 - 1], np.uint64), dst=np.array(["a"]), more=1)
    assert [name for _, name in names_in(tmp_path / "e.npz")] == [2**64 - 1, "a"]
    found = document("load", tmp_path / "e.npz", tmp_path / "g", "--names")
    assert found["unused_columns"] == ["more"]
    np.savez(tmp_path / "e.npz", src=np.array(["a"]), dst=np.array(["x" * 1025]))
    (rejected,) = ingest.FileSource(tmp_path / "e.npz", names=True).poll()
    assert "1024 bytes" in rejected.value.reason  # type: ignore[union-attr]
    path = tmp_path / "e.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n")
    assert [name for _, name in names_in(path)] == [1, 0, 0, 1, 2, 2]


def test_a_named_file_resumes_exactly(tmp_path: Path) -> None:
    path, state = tmp_path / "e.csv", tmp_path / "state"
    rng = np.random.default_rng(7)
    pairs = [[f"v{u}" if u % 3 else int(u) for u in row] for row in rng.integers(0, 50, (400, 2))]
    path.write_text("".join(f"{u},{v}\n" for u, v in pairs))
    run("ingest", path, "--save", tmp_path / "whole.lpma", "--names", "--batch-size", 7)
    for _ in range(4):
        run("ingest", path, "-c", state, "--names", "--batch-size", 7, "--limit", 90)
    end = ["ingest", path, "-c", state, "--save", tmp_path / "parts.lpma"]
    assert document(*end)["total_operations"] == 400
    for name in ("whole", "parts"):
        found = document(
            "run", "core", tmp_path / f"{name}.lpma", "--out", tmp_path / f"{name}.csv"
        )
        assert found["vertices"] == len({(type(n), n) for pair in pairs for n in pair})
    assert (tmp_path / "whole.csv").read_text() == (tmp_path / "parts.csv").read_text()
    whole, parts = (lpma.Graph.load(tmp_path / f"{n}.lpma", "cpu") for n in ("whole", "parts"))
    assert whole.names is not None
    assert parts.names is not None
    every = range(len(whole.names))
    assert whole.names.of(every).tolist() == parts.names.of(every).tolist()
    run(*end, "--no-names", status=1)


def test_late_lines_of_named_vertices(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("src,dst,time\na,b,10\na,c,1\nb,5,11\n")
    letters: list[ingest.DeadLetter] = []
    graph = lpma.Graph(device="cpu")
    source = ingest.FileSource(path, names=True)
    with ingest.Pipeline(
        source, graph, names=True, late="reject", dead_letters=letters.append
    ) as pipeline:
        pipeline.run("end")
    names = ingest.decode_record(letters[0].value, names=True).names
    assert names is not None
    assert (names.src.tolist(), names.dst.tolist()) == (["a"], ["c"])
    assert graph.num_edges == 2

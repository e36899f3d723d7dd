"""Edge lists as streams: every format, the same operations at the same offsets, bad lines named."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import FileSource, IdentityError, OffsetError, Rejected, SourceError
from ingest.sources.files import edge_lists
from lpma.batch import Columns
from tests.conftest import real_graph

Row = tuple[int, int, float, int | None, int]
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def drain(source: FileSource) -> dict[int, Row | str]:
    """Offset → (src, dst, weight, time, kind), or the reason it was rejected."""
    found: dict[int, Row | str] = {}
    while polled := source.poll():
        for record in polled:
            assert record.partition == source.partition
            if isinstance(record.value, Rejected):
                found[record.offset] = record.value.reason
                continue
            assert isinstance(record.value, Columns)
            for i in range(len(record.value)):
                found[record.offset + i] = row(record.value, i)
    assert source.at_end()
    assert source.positions() == {source.partition: len(found)}
    assert sorted(found) == list(range(len(found)))
    return found


def row(c: Columns, i: int) -> Row:
    weight = 1.0 if c.weight is None else float(c.weight[i])
    time = None if c.time is None else int(c.time[i])
    return int(c.src[i]), int(c.dst[i]), weight, time, int(c.kind[i])


def edges(path: Path, **options: Any) -> list[Row | str]:
    return list(drain(FileSource(path, **options)).values())


def plain(*pairs: tuple[int, int]) -> list[Row]:
    return [(u, v, 1.0, None, 0) for u, v in pairs]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.edges", "a"])
def test_snap_text(write: Write, name: str) -> None:
    text = "# Nodes: 3\n# FromNodeId\tToNodeId\n1\t2\n\n  3 4  \r\n% more\n5 6"
    assert edges(write(name, text)) == plain((1, 2), (3, 4), (5, 6))


def test_columns_by_number_name_and_header(write: Write) -> None:
    four = write("a.txt", "1 2 .5 10\n3 4 -2 20\n")
    expected: list[Row] = [(1, 2, 0.5, 10, 0), (3, 4, -2.0, 20, 0)]
    assert edges(four) == expected
    three = write("b.txt", "1 2 10\n")
    with pytest.raises(SourceError, match="3 columns and no header: say which"):
        edges(three)
    assert edges(three, columns="src dst time") == [(1, 2, 1.0, 10, 0)]
    assert edges(three, columns=["src", "dst", "weight"]) == [(1, 2, 10.0, None, 0)]
    assert edges(three, columns="src dst -") == plain((1, 2))
    assert edges(write("c.txt", "9 2 1\n"), columns="- dst src") == plain((1, 2))
    named = write("d.csv", 'time,Target,note,SOURCE,rating\n10,2,"x",1,.5\n20,"4",y,3,-2\n')
    assert edges(named, columns={"src": "SOURCE", "dst": "Target"}) == plain((1, 2), (3, 4))
    assert edges(named) == expected
    assert edges(write("e.csv", "1;2\n"), delimiter=";") == plain((1, 2))
    assert edges(write("f.txt", "src dst kind\n1 2 0\n1 2 1\n")) == [
        (1, 2, 1.0, None, 0),
        (1, 2, 1.0, None, 1),
    ]


@pytest.mark.parametrize(
    "text, columns, message",
    [
        ("1\n2\n", None, "1 columns"),
        ("a,b\n1,2\n", None, "src and dst are needed"),
        ("1,2\n", {"src": "a", "dst": "b"}, "no header"),
        ("a,b\n1,2\n", {"src": "a", "dst": "c"}, "src and dst are needed"),
        ("1,2\n", "src dst color", "others are"),
        ("1,2\n", "src", "src and dst are needed"),
    ],
)
def test_columns_that_make_no_edges(write: Write, text: str, columns: Any, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        edges(write("a.csv", text), columns=columns)


def test_times_with_a_fraction_are_cut(write: Write) -> None:
    path = write("a.csv", "SOURCE,TARGET,RATING,TIME\n6,2,4,1289241911.72836\n6,5,2,2e9\n")
    assert edges(path) == [(6, 2, 4.0, 1289241911, 0), (6, 5, 2.0, 2_000_000_000, 0)]
    whole = "".join(f"{i} 1 {2**60 + i}\n" for i in range(300))
    late = write("b.txt", whole + "300 1 5.5\n")  # past the lines that are looked at first
    got = edges(late, columns="src dst time")
    assert got == [*((i, 1, 1.0, 2**60 + i, 0) for i in range(300)), (300, 1, 1.0, 5, 0)]


BAD_LINES = {
    "x 2": "src: not an integer",
    "1": "fewer than 2 columns",
    "-1 2": "src: ids",
    "4294967295 2": "src: ids",
    "1 99999999999999999999": "dst: not an integer of 64 bits",
    "1.0 2": "src: not an integer",
    "1_0 2": "src: not an integer",
    "nan 2": "src: not an integer",
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_line_keeps_its_place_and_harms_no_other(write: Write, line: str) -> None:
    lines = [f"{i} {i + 1}" for i in range(100)]
    lines[0:0] = ["7 8"]
    lines[50] = line
    source = FileSource(write("a.txt", "\n".join(lines)))
    found = drain(source)
    assert BAD_LINES[line] in str(found[50])
    del found[50]
    assert all(isinstance(value, tuple) for value in found.values())
    source.seek({source.partition: 50})
    (rejected,) = source.poll(max_records=1)
    assert isinstance(rejected.value, Rejected)
    assert rejected.value.value == line.encode()


def test_weights_times_and_kinds_within_bounds(write: Write) -> None:
    path = write("a.txt", "1 2 nan 1\n1 2 2e30 1\n1 2 inf 1\n1 2 1 nan\n1 2 1 1e19\n1 2 1 1.5\n")
    found = edges(path)
    assert ["weight" in str(x) or "time" in str(x) for x in found] == [True] * 5 + [False]
    kinds = write("b.txt", "1 2 3\n1 2 4\n1 2 -1\n")
    found = edges(kinds, columns="src dst kind")
    assert found[0] == (1, 2, 1.0, None, 3)
    assert all("kind" in str(x) for x in found[1:])


def test_bytes_that_are_no_text_are_rejected_lines(write: Write) -> None:
    found = edges(write("a.txt", b"1 2\n\xff\xfe\x00 2\n3 4\n"))
    assert found[0] == plain((1, 2))[0]
    assert isinstance(found[1], str)
    assert found[2] == plain((3, 4))[0]
    assert edges(write("b.txt", b"\xef\xbb\xbf1 2\n")) == plain((1, 2))
    with pytest.raises(SourceError, match="a line passes"):
        edges(write("c.txt", b"1" * 3_000_000))


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
        ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", "no reading"),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 0\n", "no reading"),
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
    assert found[1:3] == plain((0, 0), (2, 1))
    assert "src: ids" in str(found[0])
    assert "src: ids" in str(found[3])


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    columns: dict[str, Any] = {"src": np.array([1, 2]), "dst": np.array([3, 4])}
    np.savez(path, **columns)
    assert edges(path) == plain((1, 3), (2, 4))
    np.savez(path, **columns, t=np.array([5, 6]), w=np.array([-1, 2]), kind=np.array([0, 1]))
    assert edges(path) == [(1, 3, -1.0, 5, 0), (2, 4, 2.0, 6, 1)]
    np.savez(path, src=np.array([1, 2**32]), dst=np.array([3, 4]))
    assert edges(path)[0] == plain((1, 3))[0]
    assert "src: ids" in str(edges(path)[1])
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


@given(st.data())
@settings(max_examples=25)
def test_any_offset_can_be_sought_at_any_block_size(data: st.DataObject) -> None:
    import tempfile

    count = data.draw(st.integers(1, 60))
    bad = data.draw(st.sets(st.integers(0, count - 1), max_size=5))
    lines = ["bad" if i in bad else f"{i} {i + 1}" for i in range(count)]
    lines[0] = "0 1"
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        path = Path(directory) / "a.txt"
        path.write_text("# x\n" + "\n".join(lines) + "\n")
        whole = drain(FileSource(path))
        patch.setattr(edge_lists, "BLOCK_BYTES", data.draw(st.integers(1, 50)))
        source = FileSource(path, chunk=data.draw(st.integers(1, 10)))
        offset = data.draw(st.integers(0, count))
        source.seek({source.partition: offset})
        found: dict[int, Row | str] = {}
        while polled := source.poll(data.draw(st.integers(1, 3))):
            for record in polled:
                assert record.offset == offset + len(found)
                if isinstance(record.value, Columns):
                    for i in range(len(record.value)):
                        found[record.offset + i] = row(record.value, i)
                else:
                    assert isinstance(record.value, Rejected)
                    found[record.offset] = record.value.reason
        assert found == {i: value for i, value in whole.items() if i >= offset}
        with pytest.raises(OffsetError, match="were asked for"):
            source.seek({source.partition: count + 1})


def test_identity_changes_with_the_file_and_its_reading(write: Write) -> None:
    path = write("a.txt", "1 2 3\n")
    identity = FileSource(path, columns="src dst time").identity()
    assert FileSource(path, columns="src dst time").identity() == identity
    with pytest.raises(IdentityError):
        identity.check(FileSource(path, columns="src dst weight").identity())
    write("a.txt", "1 2 4\n")
    with pytest.raises(IdentityError, match="replaced"):
        identity.check(FileSource(path, columns="src dst time").identity())


@pytest.mark.parametrize("change", ["in the middle", "shorter", "longer"])
def test_a_file_written_again_is_told_wherever_it_changed(write: Write, change: str) -> None:
    """Also far from both its ends, and as long as before."""
    lines = [f"{i:07} {i + 1:07}\n" for i in range(400_000)]  # 6 MB
    path = write("a.txt", "".join(lines))
    source = FileSource(path)
    identity = source.identity()
    identity.check(source.identity())
    if change == "in the middle":
        lines[200_000] = f"{7:07} {7:07}\n"
    else:
        lines = lines[:-1] if change == "shorter" else [*lines, lines[-1]]
    write("a.txt", "".join(lines))
    for found in (source, FileSource(path)):
        with pytest.raises(IdentityError, match="replaced"):
            identity.check(found.identity())


def test_the_rate_is_kept(write: Write) -> None:
    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    clock = Clock()
    source = FileSource(
        write("a.txt", "".join(f"{i} 1\n" for i in range(100))), rate=10, clock=clock
    )
    assert source.poll() == []
    polled = 0
    for second in range(1, 9):
        clock.now = float(second)
        polled += sum(len(r.value) for r in source.poll() if isinstance(r.value, Columns))
        assert polled == 10 * second
    clock.now = 100.0
    assert source.poll()[0].last == 99
    assert source.at_end()


def test_bad_arguments(write: Write, tmp_path: Path) -> None:
    path = write("a.txt", "1 2\n")
    for options in ({"format": "xml"}, {"rate": 0}, {"chunk": 0}):
        with pytest.raises(SourceError):
            FileSource(path, **options)
    with pytest.raises(SourceError, match="no such file"):
        FileSource(tmp_path / "missing.txt")


def test_a_real_graph_comes_whole(tmp_path: Path) -> None:
    graph = real_graph("soc-sign-bitcoinotc")
    table = np.c_[graph["src"], graph["dst"], graph["w"], graph["t"]]
    path = tmp_path / "g.csv.gz"
    np.savetxt(
        path, table, fmt="%d", delimiter=",", header="SOURCE,TARGET,RATING,TIME", comments=""
    )
    got = np.array([x[:4] for x in edges(path)])
    np.testing.assert_array_equal(got, table)

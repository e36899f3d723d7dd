"""Edge lists as streams: every format, the same operations at the same offsets, bad lines named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import Fields, FileSource, OffsetError, SourceError
from ingest.errors import IdentityError
from ingest.sources import Rejected
from ingest.sources.files import opening
from ingest.state.checkpoint import State
from lpma.batch.columns import Columns
from tests.conftest import real_graph
from tests.support.edge_files import Row, Write, drain, edges, plain, row


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.edges", "a"])
def test_snap_text(write: Write, name: str) -> None:
    text = "# Nodes: 3\n# FromNodeId\tToNodeId\n1\t2\n\n  3 4  \r\n% more\n5 6"
    assert edges(write(name, text)) == plain((1, 2), (3, 4), (5, 6))


def test_columns_by_number_name_and_header(write: Write) -> None:
    four = write("a.txt", "1 2 .5 10\n3 4 -2 20\n")
    expected: list[Row] = [(1, 2, 0.5, 10, 0), (3, 4, -2.0, 20, 0)]
    assert edges(four) == expected
    three = write("b.txt", "1 2 10\n")
    assert edges(three) == [(1, 2, 10.0, None, 0)]
    assert edges(write("g.txt", "1 2 1217567877\n")) == [(1, 2, 1.0, 1217567877, 0)]
    assert edges(three, columns="src dst time") == [(1, 2, 1.0, 10, 0)]
    assert edges(three, columns=["src", "dst", "weight"]) == [(1, 2, 10.0, None, 0)]
    assert edges(three, columns="src dst -") == plain((1, 2))
    assert edges(write("c.txt", "9 2 1\n"), columns="- dst src") == plain((1, 2))
    named = write("d.csv", 'time,Target,note,SOURCE,rating\n10,2,"x",1,.5\n20,"4",y,3,-2\n')
    assert edges(named, columns={"src": "SOURCE", "dst": "Target"}) == plain((1, 2), (3, 4))
    assert edges(named) == expected
    assert edges(write("e.csv", "1;2\n"), separator=";") == plain((1, 2))
    assert edges(write("f.txt", "src dst kind\n1 2 0\n1 2 1\n"), kind="kind") == [
        (1, 2, 1.0, None, 0),
        (1, 2, 1.0, None, 1),
    ]


@pytest.mark.parametrize(
    "text, columns, message",
    [
        ("1\n2\n", None, "it has one column"),
        ("a,b,c\n1,2,3\n", None, "which columns are source and target"),
        ("1,2\n", {"src": "a", "dst": "b"}, "no header"),
        (
            "a,b\n1,2\n",
            {"src": "a", "dst": "c"},
            "no column 'c' for the target: the columns are 'a', 'b'",
        ),
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
    "1": "1 field where 2 are expected",
    "-1 2": "src: ids",
    "4294967295 2": "src: ids",
    "1 99999999999999999999": "dst: not an integer of 64 bits",
    "1.5 2": "src: not an integer",
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
    found = edges(path, columns="src dst weight time")
    assert ["weight" in str(x) or "time" in str(x) for x in found] == [True] * 5 + [False]
    rows = "".join(f"1 2 {i % 4}\n" for i in range(1000))
    bad = ["4", *map(str, range(5, 11)), "12", "-1", "x", ""]
    kinds = write("b.txt", rows + "1 2 3\n1 2 11\n" + "".join(f"1 2 {kind}\n" for kind in bad))
    found = edges(kinds, columns="src dst kind")[1000:]
    assert found[:2] == [(1, 2, 1.0, None, 3), (1, 2, 1.0, None, 11)]
    assert all("kind" in str(x) or "fields" in str(x) for x in found[2:])
    assert len(found) == 2 + len(bad)
    with pytest.raises(SourceError, match=r"kinds are append.*--kind-map 4x=insert"):
        edges(write("c.txt", "1 2 4x\n1 2 4x\n"), columns="src dst kind")
    timed = write("d.txt", "1 2 0 5\n0 0 4 9\n")
    assert edges(timed, columns="src dst kind time") == [(1, 2, 1.0, 5, 0), (0, 0, 1.0, 9, 4)]


def test_bytes_that_are_no_text_are_rejected_lines(write: Write) -> None:
    found = edges(write("a.txt", b"1 2\n\xff\xfe\x00 2\n3 4\n"))
    assert found[0] == plain((1, 2))[0]
    assert isinstance(found[1], str)
    assert found[2] == plain((3, 4))[0]
    assert edges(write("b.txt", b"\xef\xbb\xbf1 2\n")) == plain((1, 2))
    with pytest.raises(SourceError, match="passes"):
        edges(write("c.txt", b"1" * 9_000_000))


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
        patch.setattr(opening, "BLOCK_BYTES", data.draw(st.integers(1, 50)))
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
    said = r"columns was 'src dst time', now 'src dst weight'\): say the same as then"
    with pytest.raises(IdentityError, match=said):
        identity.check(FileSource(path, columns="src dst weight").identity())
    with pytest.raises(IdentityError, match="names was False, now True"):
        identity.check(FileSource(path, columns="src dst time", names=True).identity())
    timed = FileSource(path, source=1, target=2, time=3).identity()
    with pytest.raises(IdentityError, match=r"time was 3, now not given\)"):
        timed.check(FileSource(path, source=1, target=2).identity())
    older = replace(identity, read_as=None)
    with pytest.raises(IdentityError, match="its columns, names or separator are others"):
        older.check(FileSource(path).identity())
    other = write("b.txt", "1 2 3\n")
    with pytest.raises(IdentityError, match=r"the file was called 'a.txt' .* ln -s b.txt a.txt"):
        identity.check(FileSource(other, columns="src dst time").identity())
    write("b.txt", "1 2 4\n")
    with pytest.raises(IdentityError, match=r"the file read was 'a.txt', .* holds other bytes"):
        identity.check(FileSource(other, columns="src dst time").identity())
    write("a.txt", "1 2 4\n")
    with pytest.raises(IdentityError, match="holds other bytes"):
        identity.check(FileSource(path, columns="src dst time").identity())


@pytest.mark.parametrize(
    "options",
    [
        {"columns": "src dst time"},
        {"columns": ["src", "dst", "-"]},
        {"columns": {"src": "a", "dst": "b"}},
        {"columns": ("src", "dst", "-")},
        {"source": "b", "target": "a", "weight": "none", "time": "t", "header": True},
        {"separator": ";", "names": True, "mirror": False},
        {"format": "jsonl", "json": Fields("a", "b", time="t")},
    ],
    ids=str,
)
def test_an_identity_says_how_to_read_the_file_again(write: Write, options: dict[str, Any]) -> None:
    """Through the JSON of a checkpoint, too."""
    text = '{"a": 1, "b": 2, "t": 3}\n' if "json" in options else "a,b,t\n1,2,3\n"
    path = write("a.csv", text.replace(",", options.get("separator", ",")))
    source = FileSource(path, **options)
    kept = State(source.identity(), {}).to_json()
    identity = State.from_json(json.loads(json.dumps(kept)), []).identity
    identity.check(source.identity())
    if isinstance(options.get("columns"), tuple):
        assert identity.read_as is None, "JSON has no tuples"
        return
    assert identity.read_as is not None
    again = FileSource.again(path, identity.read_as)
    identity.check(again.identity())
    assert again.poll()[0].offset == 0
    del kept["read_as"]
    assert State.from_json(kept, []).identity.read_as is None, "of an older release"


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
        with pytest.raises(IdentityError, match="other bytes"):
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

"""Rows read many at once: what their reader takes is what the codec says, to the bit."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
from ingest import Fields, Partition
from ingest.formats.row_reader import RowReader, as_columns, in_runs, with_names
from ingest.types import Names, Polled, Values
from lpma import Kind
from lpma.batch.columns import WEIGHTED, Columns
from tests.conftest import soak

PLACE = Partition("t", 0)
NONE = Fields()
WIDE = Fields(
    "user", "to.item", "score", "at", "op", "who", "n", time_unit="s", default_weight=2.5,
    kinds={"follow": "append", "unfollow": "delete", "delete": "add_vertex", "put": "set",
           "-1": "delete"},
)  # fmt: skip
FLAT = Fields("user", "item", "score", "at", "op")
SETS = Fields("user", "item", "score", kind="op", default_kind="set", default_weight=3.0)
ADDS = Fields("user", "item", time="at", time_unit="us", default_kind="delete")
NESTED = Fields("a.b", "a", "a.b.c", "d.e", "d.f")  # of which some lie within others
OURS = Fields(time="at", time_unit="s", default_weight=0.5)  # the ends by our own names
PLAIN = Fields(weight="weight", time_unit="us")
TURNED = Fields("dst", "query.src", "weight", kind="src")  # which give them another meaning
SWAPPED = Fields("user", "item", kind="op", kinds={"append": "delete"})
MAPPINGS = {"wide": WIDE, "flat": FLAT, "sets": SETS, "adds": ADDS, "nested": NESTED, "ours": OURS,
            "plain": PLAIN, "turned": TURNED, "swapped": SWAPPED, "none": None}  # fmt: skip

Row = tuple[Any, ...]


def by_codec(value: bytes, fields: Fields | None, names: bool) -> Row | None:
    """The row of a record and its producer; None for a record that is not one row."""
    try:
        record = ingest.decode_record(value, names=names, fields=fields)
    except ingest.RecordError:
        return None
    if record.queries or len(record.batch) != 1:
        return None
    row = rows_of(record.batch, record.names or record.batch)[0]
    return (*row, (record.producer, record.seq))


def rows_of(batch: Columns, ends: Names | Columns) -> list[Row]:
    weight = np.ones(len(batch)) if batch.weight is None else batch.weight
    times = [None] * len(batch) if batch.time is None else batch.time.tolist()
    u, v = (np.asarray(end).tolist() for end in (ends.src, ends.dst))
    columns = [batch.kind.tolist(), u, v, weight.tolist(), times]
    return [
        (kind, u, v, w if kind in WEIGHTED else 1.0, t)
        for kind, u, v, w, t in zip(*columns, strict=True)
    ]


def check(values: list[bytes], fields: Fields | None, names: bool) -> int:
    """That each row read is the codec's, and all records are there; how many rows were read."""
    at, read = 0, 0
    for stretch in RowReader(fields, names).stretches(Values.of(values)):
        assert stretch.start == at
        assert stretch.stop > at
        at = stretch.stop
        if stretch.rows is None:
            continue
        rows, ends = stretch.rows, with_names(stretch.rows, stretch.ends)
        assert len(rows) == stretch.stop - stretch.start
        read += len(rows)
        nobody: list[Any] = [(None, None)] * len(rows)
        producers = stretch.producers or nobody
        found = zip(rows_of(rows, ends), producers, strict=True)
        for value, (row, producer) in zip(values[stretch.start : stretch.stop], found, strict=True):
            assert repr((*row, producer)) == repr(by_codec(value, fields, names)), value
    assert at == len(values)
    return read


# What a field may hold: mostly what passes.
integers = st.one_of(
    st.integers(0, 300), st.integers(2**32 - 3, 2**32 + 1), st.integers(-(2**63) - 1, 2**64),
    st.sampled_from([2**63 - 1, 2**63, 10**25, -1]),
)  # fmt: skip
texts = st.sampled_from(["a", "käse", "5", "", "x" * 1024, "ż" * 600, "\ud800", "a\0b"])
odd: st.SearchStrategy[Any] = st.sampled_from(
    [True, None, [], {}, [1], 1.0, 2.5, 2.0**54, float("nan"), float("inf")]
)
vertices = st.one_of(st.integers(0, 9), st.integers(0, 9), integers, texts, odd)
weights = st.one_of(st.floats(-1e30, 1e30), st.floats(), st.floats(width=32), integers, odd)
times = st.one_of(
    st.integers(0, 10**12), integers, odd,
    st.sampled_from(["2020-01-01", "2019-10-01 00:00:07 UTC", "1970-01-01T00:00:00.5+02:00",
                     "7", "soon"]),
)  # fmt: skip
kinds = st.sampled_from(
    [
        "append",
        "delete",
        "set",
        "add_vertex",
        "follow",
        "unfollow",
        "put",
        "edge",
        "",
        0,
        11,
        1,
        7,
        -1,
        "-1",
        "insert",
        "INSERT",
        "Delete",
        "11",
        "٣",
        True,
        2.0,
        2**70,
    ]
)
sources, seqs = st.sampled_from(["s", "", "x" * 65, 5]), st.one_of(st.integers(0, 9), integers, odd)
MEANT = {"src": vertices, "dst": vertices, "weight": weights, "time": times, "kind": kinds,
         "source": sources, "seq": seqs}  # fmt: skip


@st.composite
def objects(draw: st.DrawFn, fields: Fields) -> bytes:
    """An object of JSON, or a map of msgpack, that may have those fields, and others, in any
    order."""
    content: list[tuple[str, Any]] = []
    for role, name in fields.of_topic().by_role().items():
        is_end = role in ("src", "dst")
        if name is None or not (draw(st.integers(0, 9)) if is_end else draw(st.booleans())):
            continue
        value = draw(MEANT[role])
        steps = name.split(".")
        if len(steps) > 1 and draw(st.integers(0, 3)):
            for step in reversed(steps[1:]):
                value = {step: value, "more": 1}
            name = steps[0]
        content.append((name, value))
    content += draw(st.lists(st.sampled_from(
        [("more", {"deep": [1, [2.5, None]]}), ("at", None), ("user", 7), ("to", 5), ("a", {}),
         ("src", 3), ("dst", 4), ("weight", 2.0), ("time", 9), ("seq", 8), ("query", {"src": 5}),
         ("query", "edge"), ("id", "q"), ("rows", None), ("epoch", 7)]
    ), max_size=3))  # fmt: skip
    if draw(st.booleans()):
        return draw(maps(draw(st.permutations(content))))
    parts = [f"{json.dumps(n)}: {json.dumps(v)}" for n, v in draw(st.permutations(content))]
    data = ("{" + ", ".join(parts) + "}").encode()
    form = draw(st.integers(0, 30))
    if form == 0:
        at = draw(st.integers(0, len(data) - 1))
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    if form == 1:
        return data[:-1] + b', "x": "\xff"}'
    return data.replace(b"0", b"9" * 30) if form == 2 else data[: len(data) - (form == 3)]


@st.composite
def maps(draw: st.DrawFn, content: list[tuple[str, Any]]) -> bytes:
    """These fields as a map of msgpack, some of them with what no JSON has."""
    content = [*content, *((f"x{i}", i) for i in range(draw(st.sampled_from([0, 0, 0, 14]))))]
    parts = [
        bytes([0x80 + len(content)]) if len(content) < 16 else b"\xde\0" + bytes([len(content)])
    ]
    rare: Any = [b"a", msgpack.ExtType(5, b"ab"), msgpack.Timestamp(7), {5: 1}]
    for name, value in content:
        value = draw(st.sampled_from(rare)) if draw(st.integers(0, 20)) == 0 else value
        try:
            parts += [msgpack.packb(name), msgpack.packb(value)]
        except (OverflowError, UnicodeEncodeError):
            parts += [msgpack.packb(name), b"\xa2\xff\xff"]  # no UTF-8
    data = b"".join(parts)
    form = draw(st.integers(0, 20))
    if form == 0:
        at = draw(st.integers(0, len(data) - 1))
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    return data + b"\0" if form == 1 else data[: len(data) - (form == 2)]


@st.composite
def packed(draw: st.DrawFn) -> bytes:
    """Rows of msgpack, good and bad, in all of its ways to write a number."""
    content: Any
    if draw(st.booleans()):
        named = {n: draw(MEANT[n]) for n in ("src", "dst", *draw(st.sets(st.sampled_from(
            [*list(MEANT)[2:], "more", "rows"]))) ) if n in MEANT}  # fmt: skip
        content = dict(draw(st.permutations(list(named.items()))))
    else:
        content = [draw(one) for one in (vertices, vertices, weights, times)]
        content = content[: draw(st.integers(1, 4))]
    try:
        data: bytes = msgpack.packb(content, use_single_float=draw(st.booleans()))
    except (OverflowError, UnicodeEncodeError, ValueError):
        return b""
    form = draw(st.integers(0, 20))
    if form == 0:
        at = draw(st.integers(0, len(data) - 1))
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    if form == 1 and data[0] & 0xF0 == 0x80 and data[0] < 0x8F:
        return bytes([data[0] + 1]) + data[1:] + msgpack.packb("src") + b"\x07"  # once more
    return data[: len(data) - (form == 2)]


others = st.sampled_from([
    b"", b"\xc0", b"{}", ingest.encode_query("q", Kind.DEGREE, 1), ingest.encode_expire(7),
    ingest.encode_updates([1, 2], [3, 4]), b'{"src":1,"dst":' + b"[" * 400 + b"]" * 400 + b"}",
    ingest.encode_updates([1, 2], [3, 4], time=[10, 2**62]), ingest.encode_row(1, 2, time=10**17),
    b"\x83\xa4user\x01\xa4item\x02\xa1x" + b"\x91" * 400 + b"\0",
    b"\x83\xa4user\x01\xa4item\x02\xa1x" + b"\x91" * 200 + b"\0",
    b"\x83\xa4user\x01\xa4item\x02\xa1x\xda\x02\0" + "é".encode() * 256,
])  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("names", [False, True], ids=["ids", "names"])
def test_it_says_what_the_codec_says(mapping: str, names: bool) -> None:
    fields = MAPPINGS[mapping]
    good = {"user": 1, "item": 2, "to": {"item": 2}, "src": 1, "dst": 2}
    row = json.dumps(good).encode() if fields is not None else ingest.encode_row(1, 2)
    one = st.one_of(packed(), others, *([] if fields is None else [objects(fields)] * 3))

    @given(st.lists(st.one_of(st.just(row), one), min_size=1, max_size=40))
    @settings(max_examples=soak(60, 10_000), deadline=None)
    def mixtures(values: list[bytes]) -> None:
        check(values, fields, names)

    mixtures()


LONG_BEFORE = b"\x83\xa3src\xda\x04\x01" + b"x" * 1025 + b"\xa3dst\x02\xa3src\x01"
LATE = b"\x83\xa3src\x05\xa3dst\x06\xa4time\xcf\x80\0\0\0\0\0\0\0"  # 2^63
NO_KIND = b'{"user":1,"item":2}', b"\x82\xa4user\x01\xa4item\x02"
KIND_BY_NUMBER = b'{"user":0,"item":0,"op":0,"x":"\xff"}'  # with the weight that is the default
VERTEX_BY_OURS = b"\x84\xa3dst\x00\xa3src\xaaadd_vertex\xa1x\x00\xa1x\x81\xa1y\x00"


@pytest.mark.parametrize("names", [False, True], ids=["ids", "names"])
@pytest.mark.parametrize("mapping", MAPPINGS)
def test_what_the_readers_once_took_differently(mapping: str, names: bool) -> None:
    for value in (LONG_BEFORE, VERTEX_BY_OURS, LATE, *NO_KIND, KIND_BY_NUMBER):
        check([value] * 2, MAPPINGS[mapping], names)
    record = ingest.decode_record(LONG_BEFORE, names=names)
    ends = record.names or record.batch
    assert (list(ends.src), list(ends.dst)) == ([1], [2]), "the last counts, whatever came before"
    for value in NO_KIND:
        assert ingest.decode_record(value, names=names, fields=SWAPPED).batch.kind == Kind.INSERT


@pytest.mark.parametrize("names", [False, True], ids=["ids", "names"])
@pytest.mark.parametrize("form", ["map", "array", "json", "mapped", "paths", "mapped paths"])
def test_rows_are_read(form: str, names: bool) -> None:
    """Good rows go no other way, however many bad ones stand among them."""
    rng = np.random.default_rng(3)
    ends: list[Any] = [f"v{i}" if names and i % 2 else i for i in range(9)]
    values: list[bytes] = []
    for i in range(500):
        u, v = (ends[at] for at in rng.integers(0, 9, 2))
        if form == "array":
            values.append(msgpack.packb([u, v, 1.5, i]))
        elif form == "map":
            values.append(ingest.encode_row(u, v, 1.5, i, names=names))
        elif form == "mapped":
            extra: dict[str, Any] = {f"x{i}": [{}] for i in range(i % 17)}
            values.append(msgpack.packb({"user": u, "item": v, "score": 1, "at": i, **extra}))
        elif form.endswith("paths"):
            row = {"by": {"id": u, "more": [1]}, "item": v}
            values.append(msgpack.packb(row) if "mapped" in form else json.dumps(row).encode())
        else:
            values.append(json.dumps({"user": u, "item": v, "score": 1, "at": i}).encode())
    fields = Fields("by.id", "item") if form.endswith("paths") else FLAT
    assert check(values, fields, names) == 500
    bad = [b"\xc1", b'{"user": 1', msgpack.packb([1, 2, float("nan")]), b""]
    for at in rng.integers(0, 500, 40).tolist():
        values.insert(at, bad[at % 4])
    assert check(values, fields, names) == 500


@pytest.mark.parametrize("names", [False, True], ids=["ids", "names"])
@pytest.mark.parametrize("form", ["ours", "of JSON", "mapped"])
def test_sets_are_read_like_appends(form: str, names: bool) -> None:
    """Among appends and deletions, with weights and without: all as columns, none by itself."""
    rng = np.random.default_rng(4)
    values, expected = [], []
    words = {"append": Kind.INSERT, "delete": Kind.DELETE, "put": Kind.SET, "set": Kind.SET}
    for word, u, v in zip(rng.choice(list(words), 300), *rng.integers(0, 9, (2, 300)), strict=True):
        w = float(rng.normal()) if rng.random() < 0.6 else None
        if form == "ours":
            values.append(ingest.encode_row(u, v, w, kind=words[word], names=names))
        else:
            row = {"user": int(u), "to": {"item": int(v)}, "score": w, "op": str(word)}
            row["op"] = {"append": "follow", "delete": "unfollow"}.get(word, word)
            values.append(json.dumps(row).encode() if form == "of JSON" else msgpack.packb(row))
        absent = 1.0 if form == "ours" else WIDE.default_weight
        kind = words[word]
        expected.append((kind, u, v, (absent if w is None else w) if kind in WEIGHTED else 1.0))
    fields = None if form == "ours" else WIDE
    assert check(values, fields, names) == 300
    (stretch,) = RowReader(fields, names).stretches(Values.of(values))
    assert stretch.rows is not None
    rows = with_names(stretch.rows, stretch.ends)
    assert [row[:4] for row in rows_of(rows, rows)] == expected


@pytest.mark.soak
def test_no_bytes_hurt_it() -> None:
    """Rows with bytes changed anywhere: never a fault, never another row than the codec's."""
    rng = np.random.default_rng(7)
    for turn in range(soak(20, 300)):
        values = []
        for _ in range(500):
            u, v = (int(n) for n in rng.integers(0, 2**32 - 1, 2))
            time = int(rng.integers(-(2**62), 2**62)) if rng.integers(2) else None
            data = bytearray(ingest.encode_row(u, v, float(rng.normal()), time))
            if turn % 3:
                row = {"user": u, "item": v, "score": 1.5, "at": time}
                data = bytearray(json.dumps(row).encode() if turn % 3 == 1 else msgpack.packb(row))
            for _ in range(int(rng.integers(0, 4))):
                data[int(rng.integers(len(data)))] = int(rng.integers(256))
            values.append(bytes(data[: int(rng.integers(1, len(data) + 40))]))
        check(values, FLAT, bool(turn & 2))


def test_runs_end_at_gaps_and_at_partitions_and_where_times_begin() -> None:
    def polled(values: list[bytes], first: int, place: Partition = PLACE) -> list[Polled]:
        return [Polled(place, first + i, value, 100 + i) for i, value in enumerate(values)]

    def rows(count: int, time: int | None = None) -> list[bytes]:
        return [ingest.encode_row(1, n, time=time) for n in range(count)]

    given = polled(rows(10), 5) + polled(rows(10), 20) + polled(rows(10, 7), 30)
    given += polled(rows(10), 40, Partition("t", 1))
    runs = list(in_runs(given))
    assert [(r.partition.number, r.offset, r.last, r.records, r.time) for r in runs] == [
        (0, 5, 14, 10, 109), (0, 20, 39, 20, 109), (1, 40, 49, 10, 109)
    ]  # fmt: skip
    assert [run.fingerprint for run in runs] == [given[i].fingerprint for i in (9, 29, 39)]
    parts = runs[1].split(25)
    assert [part.fingerprint for part in parts] == [given[i].fingerprint for i in (14, 29)]
    found = list(as_columns(given, RowReader(None, False)))
    assert [(r.partition.number, r.offset, r.last) for r in found] == [
        (0, 5, 14), (0, 20, 29), (0, 30, 39), (1, 40, 49)
    ]  # fmt: skip
    assert all(isinstance(one.value, Columns) for one in found)
    head, tail = runs[1].split(23)
    assert (head.last, tail.offset, tail.last, len(head.value)) == (22, 23, 39, 3)  # type: ignore[arg-type]

"""The file format: what goes in comes out, and no damage passes unnoticed."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import lpma
from lpma import FormatError, persist
from tests.support.oracles import agree, assert_same
from tests.support.strategies import Config, bursts, configs

HEADER: dict[str, persist.Value] = {
    "a": 1, "b": -2.5, "c": "naïve ∞", "d": True, "e": None, "f": -(2**70), "": 1e-300,
}  # fmt: skip
COLUMNS = {
    "keys": np.arange(5, dtype=np.uint64) << np.uint64(60),
    "weights": np.array([0.0, -0.0, np.inf, np.nan, 1e-45], np.float32),
    "empty": np.empty(0, np.float64),
    "flags": np.array([True, False, True]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.lpma"


def test_round_trip(path: Path) -> None:
    persist.write(path, HEADER, COLUMNS)
    header, columns = persist.read(path)
    assert header == HEADER
    assert [type(value) for value in header.values()] == [type(HEADER[key]) for key in header]
    assert list(columns) == list(COLUMNS)
    assert_same(list(columns.values()), list(COLUMNS.values()))


def test_nothing_at_all(path: Path) -> None:
    persist.write(path, {}, {})
    assert persist.read(path) == ({}, {})


@given(column=nps.arrays(
    st.sampled_from(persist.DTYPES).map(np.dtype) | nps.integer_dtypes(endianness=">"),
    st.integers(0, 50)))  # fmt: skip
def test_every_dtype(tmp_path_factory: pytest.TempPathFactory, column: Any) -> None:
    path = tmp_path_factory.mktemp("dtypes") / "file"
    persist.write(path, {}, {"x": column[::-1]})
    read = persist.read(path)[1]["x"]
    assert read.dtype == column.dtype.newbyteorder("<")
    assert read.tobytes() == column[::-1].astype(read.dtype).tobytes()


def test_equal_contents_give_equal_files(tmp_path: Path) -> None:
    persist.write(tmp_path / "a", HEADER, COLUMNS)
    backwards = dict(reversed(HEADER.items()))
    persist.write(tmp_path / "b", backwards, COLUMNS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_flipped_byte_is_noticed(path: Path) -> None:
    persist.write(path, HEADER, COLUMNS)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[place] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(FormatError):
                persist.read(path)


def test_every_cut_and_every_tail_is_noticed(path: Path) -> None:
    persist.write(path, HEADER, COLUMNS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            persist.read(path)
    for tail in (b"\0", b"\n", whole):
        path.write_bytes(whole + tail)
        with pytest.raises(FormatError, match="follows"):
            persist.read(path)
    path.write_bytes(whole)
    assert persist.read(path)[0] == HEADER


@given(content=st.binary(max_size=200), prefixed=st.booleans())
def test_foreign_files_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, prefixed: bool
) -> None:
    path = tmp_path_factory.mktemp("foreign") / "file"
    path.write_bytes(persist.MAGIC * prefixed + content)
    with pytest.raises(FormatError, match="file"):
        persist.read(path)


def forged(header: bytes, body: bytes = b"", version: int = 1, size: int | None = None) -> bytes:
    """A file whose checksums hold, whatever it says."""
    announced = len(header) if size is None else size
    prefix = persist.MAGIC + struct.pack("<3I", version, announced, zlib.crc32(header))
    return prefix + struct.pack("<I", zlib.crc32(prefix)) + header + body


def announce(*columns: Any, **header: Any) -> bytes:
    value = {"columns": list(columns), "header": header}
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


NO_CRC = struct.pack("<I", 0)


@pytest.mark.parametrize("content", [
    forged(announce(["x", "uint64", 2**61])),
    forged(announce(["x", "uint64", 2**64])),
    forged(announce(["x", "uint8", 10**30])),
    forged(announce(["x", "uint8", -1])),
    forged(announce(["x", "uint8", -4], ["y", "uint8", 4]), NO_CRC * 2),
    forged(announce(["x", "uint8", True]), b"\0" + struct.pack("<I", zlib.crc32(b"\0"))),
    forged(announce(["x", "uint8", 0.0]), NO_CRC),
    forged(announce(["x", "object", 0]), NO_CRC),
    forged(announce(["x", "O", 0]), NO_CRC),
    forged(announce(["x", ">u8", 0]), NO_CRC),
    forged(announce(["x", ["uint8"], 0]), NO_CRC),
    forged(announce(["x", "uint8"]), NO_CRC),
    forged(announce([1, "uint8", 0]), NO_CRC),
    forged(announce("x")),
    forged(announce(["x", "uint8", 0], ["x", "uint8", 0]), NO_CRC * 2),
    forged(announce(["x", "bool", 1]), b"\2" + struct.pack("<I", zlib.crc32(b"\2"))),
    forged(announce(a=[1])),
    forged(announce(a=float("nan"))),
    forged(announce(a={"b": 1})),
    forged(b'{"columns":[],"header":{"a":1e999}}'),
    forged(b'{"columns":[],"header":{},"more":1}'),
    forged(b'{"columns":[], "header":{}}'),
    forged(b'{"header":{},"columns":[]}'),
    forged(b'{"columns":{},"header":{}}'),
    forged(b'{"columns":[],"header":[]}'),
    forged(b"[]"),
    forged(b""),
    forged(b"\xff\xfe"),
    forged(b"[" * 100_000),
    forged(b'{"columns":[],"header":{"a":' + b"9" * 5000 + b"}}"),
    forged(announce(), version=2),
    forged(announce(), version=0),
    forged(announce(), size=2**32 - 1),
    forged(b" " * (persist.MAX_HEADER_BYTES + 1)),
])  # fmt: skip
def test_forgeries_are_refused_without_allocating(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(FormatError):
        persist.read(path)


def test_the_forger_can_write_a_good_file(path: Path) -> None:
    """What the forgeries are refused for is what they say, not how they are put together."""
    good = np.array([7], "<u2").tobytes()
    body = good + struct.pack("<I", zlib.crc32(good))
    path.write_bytes(forged(announce(["x", "uint16", 1], a=2), body))
    header, columns = persist.read(path)
    assert header == {"a": 2}
    assert_same(columns, columns | {"x": np.array([7], np.uint16)})
    assert columns["x"].tolist() == [7]


@pytest.mark.parametrize("header, columns", [
    ({"a": [1]}, {}),
    ({"a": np.int64(1)}, {}),
    ({"a": float("nan")}, {}),
    ({"a": float("inf")}, {}),
    ({1: 2}, {}),
    ({"a": "x" * (persist.MAX_HEADER_BYTES + 1)}, {}),
    ({}, {"x": np.zeros((2, 2))}),
    ({}, {"x": np.float64(1)}),
    ({}, {"x": np.array([None])}),
    ({}, {"x": np.array(["text"])}),
    ({}, {"x": np.array([1j])}),
    ({}, {"x": np.zeros(2, np.float16)}),
    ({}, {3: np.zeros(2)}),
])  # fmt: skip
def test_what_cannot_be_kept_leaves_the_old_file(path: Path, header: Any, columns: Any) -> None:
    persist.write(path, {"old": 1}, {})
    with pytest.raises(ValueError):
        persist.write(path, header, columns)
    assert persist.read(path)[0] == {"old": 1}
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_missing_file_is_the_systems_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        persist.read(path)
    with pytest.raises(OSError):
        lpma.Graph.load(path.parent, device="cpu")


# Graph.save and Graph.load -------------------------------------------------------------------


@given(config=configs(), burst=bursts())
def test_a_graph_comes_back(
    tmp_path_factory: pytest.TempPathFactory, device: str, config: Config, burst: Any
) -> None:
    path = tmp_path_factory.mktemp("graphs") / "graph.lpma"
    g, model = config.graph(device), config.model()
    columns = burst.columns(config.queries)
    for graph in (g, model):
        graph.insert([2**32 - 2, 0], [5, 2**32 - 2], [1.5, 2.5], [-1, 7])
        graph.add_vertices(2**31, 8)
        graph.apply(columns)
    g.save(path)
    agree(g, model, dense_below=1000)
    loaded = lpma.Graph.load(path, device=device)
    agree(loaded, model, dense_below=1000)
    for name in ("directed", "strategy", "segment_size", "global_merge", "weight_dtype",
                 "has_times", "has_predecessors", "device"):  # fmt: skip
        assert getattr(loaded, name) == getattr(g, name)
    assert_same(loaded.apply(columns), model.apply(columns))
    agree(loaded, model, dense_below=1000)


@given(config=configs(), burst=bursts())
def test_an_image_is_what_a_save_would_have_written_then(
    tmp_path_factory: pytest.TempPathFactory, device: str, config: Config, burst: Any
) -> None:
    path = tmp_path_factory.mktemp("images")
    g = config.graph(device)
    old = None
    for step in range(3):
        image = g.image(old)
        g.save(path / "then")
        g.apply(burst.columns(config.queries))
        g.insert(range(100 * step), 7)
        image.save(path / "later")
        assert (path / "later").read_bytes() == (path / "then").read_bytes()
        old = image
    assert old is not None
    assert g.image().nbytes <= g.nbytes


def test_an_images_memory_is_used_again_where_it_fits(device: str, path: Path) -> None:
    g = lpma.Graph(device=device)
    g.insert(range(100_000), 1)
    first = g.image()
    memory = first._memory
    assert first.nbytes == 20 * 100_000
    g.insert(range(10_000), 2)
    second = g.image(first)
    assert second._memory is memory, "there is some to spare"
    assert (second.nbytes, first.nbytes) == (20 * 110_000, 0)
    second.save(path)
    assert lpma.Graph.load(path, device).num_edges == 110_000
    g.insert(range(300_000), 3)
    third = g.image(second)
    assert third._memory is not memory
    g.remove_vertices(range(299_990))
    assert g.image(third)._memory.nbytes < 20 * 1000, "far too much is given back"


def test_what_is_known_after_a_load(device: str, path: Path) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2], [2, 3])
    g.insert(5, 6)
    g.save(path)
    loaded = lpma.Graph.load(path, device=device)
    assert loaded.version == 2
    assert loaded.changes(1) is None
    empty = loaded.changes(2)
    assert empty is not None
    assert len(empty.src) == 0
    loaded.delete(5, 6)
    gone = loaded.changes(2)
    assert gone is not None
    assert (gone.src.tolist(), gone.inserted.tolist()) == ([5], [False])


def test_a_damaged_graph_is_refused(device: str, path: Path) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2, 3], [2, 3, 1], [0.5, 1.0, 2.0], [1, 2, 3])
    g.add_vertices(9)
    g.save(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(FormatError):
            lpma.Graph.load(path, device=device)
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            lpma.Graph.load(path, device=device)


def first_set(column: Any, value: float) -> Any:
    return np.concatenate([np.array([value], column.dtype), column[1:]])


SPOILED: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "keys fall": lambda h, c: (h, c | {"keys": c["keys"][::-1]}),
    "a key twice": lambda h, c: (h, c | {"keys": first_set(c["keys"], c["keys"][1])}),
    "a forbidden id": lambda h, c: (h, c | {"keys": c["keys"] | np.uint64(2**64 - 2**32)}),
    "keys of another dtype": lambda h, c: (h, c | {"keys": c["keys"].astype(np.int64)}),
    "weights of another dtype": lambda h, c: (h, c | {"weights": c["weights"].astype(float)}),
    "a negative weight": lambda h, c: (h, c | {"weights": first_set(c["weights"], -1)}),
    "a weight of NaN": lambda h, c: (h, c | {"weights": first_set(c["weights"], np.nan)}),
    "a time too few": lambda h, c: (h, c | {"times": c["times"][1:]}),
    "no times": lambda h, c: (h, {"keys": c["keys"], "weights": c["weights"]}),
    "an unknown strategy": lambda h, c: (h | {"strategy": "sideways"}, c),
    "text as version": lambda h, c: (h | {"version": "two"}, c),
    "a negative version": lambda h, c: (h | {"version": -2}, c),
    "no direction": lambda h, c: ({k: v for k, v in h.items() if k != "directed"}, c),
    "undirected with one side": lambda h, c: (h | {"directed": False}, c),
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_whole_file_of_a_broken_graph_is_refused(device: str, path: Path, spoil: str) -> None:
    """Its checksums hold, but it is not what `save` writes."""
    g = lpma.Graph(device=device)
    g.insert([1, 2, 2], [2, 3, 4], [0.5, 1.0, 2.0], [1, 2, 3])
    g.save(path)
    persist.write(path, *SPOILED[spoil](*persist.read(path)))
    with pytest.raises(FormatError):
        lpma.Graph.load(path, device=device)

"""The file format: what goes in comes out, and no damage passes unnoticed."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import lpma
from lpma import FormatError
from lpma.file import container
from tests.support import containers
from tests.support.oracles import assert_same

HEADER: dict[str, container.Value] = {
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
    containers.write(path, HEADER, COLUMNS)
    header, columns = containers.read(path)
    assert header == HEADER
    assert [type(value) for value in header.values()] == [type(HEADER[key]) for key in header]
    assert list(columns) == list(COLUMNS)
    assert_same(list(columns.values()), list(COLUMNS.values()))


def test_nothing_at_all(path: Path) -> None:
    containers.write(path, {}, {})
    assert containers.read(path) == ({}, {})


@given(column=nps.arrays(
    st.sampled_from(container.DTYPES).map(np.dtype) | nps.integer_dtypes(endianness=">"),
    st.integers(0, 50)))  # fmt: skip
def test_every_dtype(tmp_path_factory: pytest.TempPathFactory, column: Any) -> None:
    path = tmp_path_factory.mktemp("dtypes") / "file"
    containers.write(path, {}, {"x": column[::-1]})
    read = containers.read(path)[1]["x"]
    assert read.dtype == column.dtype.newbyteorder("<")
    assert read.tobytes() == column[::-1].astype(read.dtype).tobytes()


def test_equal_contents_give_equal_files(tmp_path: Path) -> None:
    containers.write(tmp_path / "a", HEADER, COLUMNS)
    backwards = dict(reversed(HEADER.items()))
    containers.write(tmp_path / "b", backwards, COLUMNS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_flipped_byte_is_noticed(path: Path) -> None:
    containers.write(path, HEADER, COLUMNS)
    whole = path.read_bytes()
    for place in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[place] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(FormatError):
                containers.read(path)


def test_every_cut_and_every_tail_is_noticed(path: Path) -> None:
    containers.write(path, HEADER, COLUMNS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            containers.read(path)
    for tail in (b"\0", b"\n", whole):
        path.write_bytes(whole + tail)
        with pytest.raises(FormatError, match="follows"):
            containers.read(path)
    path.write_bytes(whole)
    assert containers.read(path)[0] == HEADER


@given(content=st.binary(max_size=200), prefixed=st.booleans())
def test_foreign_files_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, prefixed: bool
) -> None:
    path = tmp_path_factory.mktemp("foreign") / "file"
    path.write_bytes(container.MAGIC * prefixed + content)
    with pytest.raises(FormatError, match="file"):
        containers.read(path)


def forged(header: bytes, body: bytes = b"", version: int = 1, size: int | None = None) -> bytes:
    """A file whose checksums hold, whatever it says."""
    announced = len(header) if size is None else size
    prefix = container.MAGIC + struct.pack("<3I", version, announced, zlib.crc32(header))
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
    forged(b" " * (container.MAX_HEADER_BYTES + 1)),
])  # fmt: skip
def test_forgeries_are_refused_without_allocating(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(FormatError):
        containers.read(path)


def test_the_forger_can_write_a_good_file(path: Path) -> None:
    """What the forgeries are refused for is what they say, not how they are put together."""
    good = np.array([7], "<u2").tobytes()
    body = good + struct.pack("<I", zlib.crc32(good))
    path.write_bytes(forged(announce(["x", "uint16", 1], a=2), body))
    header, columns = containers.read(path)
    assert header == {"a": 2}
    assert_same(columns, columns | {"x": np.array([7], np.uint16)})
    assert columns["x"].tolist() == [7]


@pytest.mark.parametrize("header, columns", [
    ({"a": [1]}, {}),
    ({"a": np.int64(1)}, {}),
    ({"a": float("nan")}, {}),
    ({"a": float("inf")}, {}),
    ({1: 2}, {}),
    ({"a": "x" * (container.MAX_HEADER_BYTES + 1)}, {}),
    ({}, {"x": np.zeros((2, 2))}),
    ({}, {"x": np.float64(1)}),
    ({}, {"x": np.array([None])}),
    ({}, {"x": np.array(["text"])}),
    ({}, {"x": np.array([1j])}),
    ({}, {"x": np.zeros(2, np.float16)}),
    ({}, {3: np.zeros(2)}),
])  # fmt: skip
def test_what_cannot_be_kept_leaves_the_old_file(path: Path, header: Any, columns: Any) -> None:
    containers.write(path, {"old": 1}, {})
    with pytest.raises(ValueError):
        containers.write(path, header, columns)
    assert containers.read(path)[0] == {"old": 1}
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_missing_file_is_the_systems_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        containers.read(path)
    with pytest.raises(OSError):
        lpma.Graph.load(path.parent, device="cpu")

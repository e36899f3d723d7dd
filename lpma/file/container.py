"""Named columns and a few facts about them in one file, every byte of it under a checksum.

    file    = prefix header column*         nothing may follow the last column
    prefix  = magic[8] version[4] header_size[4] header_crc[4] prefix_crc[4]
    magic   = 89 "LPMA" 0D 0A 1A            a transfer that alters line ends or bit 7 shows here
    header  = header_size bytes of JSON: {"columns": [[name, dtype, length], ...], "header": {...}}
    column  = length * itemsize bytes, column_crc[4]

Numbers are little-endian and unsigned; the columns come in the header's order. A crc is the CRC-32
of what stands directly before it in the same part, so that one flipped byte is found wherever it
falls: in a part, or in that part's crc. The sizes are added up and compared with the file's before
anything is allocated, which finds whatever is cut off or added and keeps a forged length from
asking for memory. The header is ASCII JSON with sorted keys and no spaces, and is accepted in no
other spelling: equal contents give equal files.

Requires one-dimensional columns of a dtype in `DTYPES`, and header values that JSON keeps exactly.

Tricks: a checksum is computed beside the write of its column, since zlib and the file calls let
other threads run. Columns are read in pieces, by all threads: the checksum of a column is computed
from those of its pieces, since a CRC is linear. A reader that looks at each piece while it is in
the cache needs no memory for the column.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..arrays import Array
from ..cpu.threads import THREADS, run_all
from ..errors import FormatError
from ..host import read_at
from .atomic import Writable

T = TypeVar("T")
Value = int | float | str | bool | None

MAGIC = b"\x89LPMA\r\n\x1a"
VERSION = 1
MAX_HEADER_BYTES = 1 << 20
DTYPES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float32", "float64")  # fmt: skip

_PREFIX = struct.Struct("<8s3I")  # the prefix without its own crc
_CRC = struct.Struct("<I")
_PREFIX_BYTES = _PREFIX.size + _CRC.size
_READ_BYTES = 1 << 30  # a single read call returns less than 2 GiB on Linux
PIECE_ROWS = 1 << 17  # of each column: they fit the cache of a core
_POLYNOMIAL = 0xEDB88320  # of CRC-32; bit 31 is the coefficient of x^0


@dataclass(frozen=True)
class Pieces:
    """A column that is made as it is written: `made()` gives its entries, piece by piece. A piece
    is written before the next is made, which may have its memory."""

    dtype: np.dtype[Any]
    length: int
    made: Callable[[], Iterator[Array]]
    ndim = 1

    def __len__(self) -> int:
        return self.length


def write_to(
    file: Writable, header: Mapping[str, Value], columns: Mapping[str, Array | Pieces]
) -> None:
    """Write to an open file, whose `write` takes everything or raises. Arrays may have any byte
    order and stride. Raises ValueError on what the format cannot hold."""
    listed = [(name, _dtype_name(name, column), len(column)) for name, column in columns.items()]
    for key, value in header.items():
        if not isinstance(key, str) or not isinstance(value, int | float | str | None):
            raise ValueError(f"header[{key!r}]: only int, float, str, bool and None can be kept")
    encoded = _encode({"columns": listed, "header": dict(header)})
    if len(encoded) > MAX_HEADER_BYTES:
        raise ValueError(f"the header takes {len(encoded)} bytes, more than {MAX_HEADER_BYTES}")
    prefix = _PREFIX.pack(MAGIC, VERSION, len(encoded), zlib.crc32(encoded))
    with ThreadPoolExecutor(1) as beside:
        file.write(prefix + _CRC.pack(zlib.crc32(prefix)) + encoded)
        for (_, dtype, _), column in zip(listed, columns.values(), strict=True):
            crc = 0
            for piece in column.made() if isinstance(column, Pieces) else [column]:
                content = np.ascontiguousarray(piece, _little_endian(dtype)).view(np.uint8).data
                grown = beside.submit(zlib.crc32, content, crc)
                file.write(content)
                crc = grown.result()
            file.write(_CRC.pack(crc))


class Column(NamedTuple):
    """Where a column lies in its file."""

    dtype: np.dtype[Any]
    length: int
    start: int


class Reader:
    """A file that `write_to` made, open: its header, and its columns, which are read when they are
    asked for. A file that replaces it meanwhile is not seen. Raises FormatError if a byte of what
    is read is not as written, and OSError."""

    def __init__(self, path: str | os.PathLike[str] | io.BytesIO) -> None:
        self.name = name_of_source(path)
        self._data: memoryview | None = None
        if isinstance(path, io.BytesIO):
            self._data = path.getbuffer()
            self.close: Callable[[], object] = self._data.release
            size = len(self._data)
        else:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self.close = weakref.finalize(self, os.close, self._file)
            size = os.fstat(self._file).st_size
        self.header: dict[str, Value] = {}
        self.columns: dict[str, Column] = {}
        with self._naming_file():
            self.header, listed, at = self._read_head(size)
            for name, dtype, length in listed:
                self.columns[name] = Column(_little_endian(dtype), length, at)
                at += length * self.columns[name].dtype.itemsize + _CRC.size
            if size != at:
                fault = "cut short" if size < at else "something follows the last column"
                raise FormatError(f"{size} bytes where the header announces {at}: {fault}")

    def read(self, name: str) -> Array:
        """A whole column."""
        column = np.empty(self.columns[name].length, self.columns[name].dtype)
        Scan(self, [name]).read_to(len(column), lambda first, part: None, [column])
        if column.dtype == bool and column.view(np.uint8).max(initial=0) > 1:
            with self._naming_file():
                raise FormatError(f"column {name} holds a byte that is neither true nor false")
        return column

    def scan(self, names: Sequence[str], see: Callable[..., T]) -> list[T]:
        """Read columns of one length in one pass: see Scan.read_to."""
        return Scan(self, names).read_to(self.columns[names[0]].length, see)

    @contextmanager
    def _naming_file(self) -> Iterator[None]:
        try:
            yield
        except FormatError as error:
            raise FormatError(f"{self.name}: {error}; restore the file from a good copy") from None

    def _fill(self, target: memoryview, at: int) -> None:
        """Fill `target` with what begins at a byte, however short the single reads are."""
        if self._data is not None:
            target[:] = self._data[at : at + len(target)]
            return
        done = 0
        while done < len(target):
            count = read_at(self._file, target[done : done + _READ_BYTES], at + done)
            if not count:
                raise FormatError("cut short while it was read")
            done += count

    def _bytes(self, count: int, at: int) -> bytes:
        content = bytearray(count)
        self._fill(memoryview(content), at)
        return bytes(content)

    def _read_head(self, size: int) -> tuple[dict[str, Value], list[tuple[Any, ...]], int]:
        """The header, (name, dtype, length) of each column, and where the first one begins."""
        if size < _PREFIX_BYTES:
            raise FormatError(f"only {size} bytes: not an LPMA file, or cut short")
        prefix = self._bytes(_PREFIX_BYTES, 0)
        magic, version, header_bytes, header_crc = _PREFIX.unpack_from(prefix)
        if magic != MAGIC:
            raise FormatError("does not start as an LPMA file does")
        (prefix_crc,) = _CRC.unpack_from(prefix, _PREFIX.size)
        if zlib.crc32(prefix[: _PREFIX.size]) != prefix_crc:
            raise FormatError("the prefix does not match its checksum")
        if version != VERSION:
            raise FormatError(f"format version {version}, but this release reads {VERSION}")
        if header_bytes > min(MAX_HEADER_BYTES, size - _PREFIX_BYTES):
            raise FormatError(
                f"a header of {header_bytes} bytes is announced: cut short, or forged"
            )
        encoded = self._bytes(header_bytes, _PREFIX_BYTES)
        if zlib.crc32(encoded) != header_crc:
            raise FormatError("the header does not match its checksum")
        return *_decode(encoded), _PREFIX_BYTES + header_bytes


class Scan:
    """A pass over columns of one length, some rows after the other."""

    def __init__(self, reader: Reader, names: Sequence[str]) -> None:
        self._reader, self._names = reader, names
        self._columns = [reader.columns[name] for name in names]
        self._crcs = [0] * len(names)  # of the rows that were read
        self._at = 0

    def read_to(
        self, end: int, see: Callable[..., T], into: Sequence[Array] | None = None
    ) -> list[T]:
        """Read the rows up to `end` piece by piece, on all threads. Returns, in order, what
        see(row, *parts) makes of each piece, from that row on: before the checksum is known, which
        is compared after the last row. Parts are used again for other pieces, unless they are read
        `into` arrays, which have room for these rows alone."""
        begin, self._at = self._at, end
        rows = max(1, min(PIECE_ROWS, -(-(end - begin) // THREADS)))
        spare: list[list[Array]] = []

        def take(first: int, last: int) -> tuple[list[int], T]:
            if into is not None:
                held = [array[first - begin :] for array in into]
            elif spare:
                held = spare.pop()
            else:
                held = [np.empty(rows, column.dtype) for column in self._columns]
            parts = [array[: last - first] for array in held]
            for part, column in zip(parts, self._columns, strict=True):
                self._reader._fill(part.view(np.uint8).data, column.start + first * part.itemsize)
            crcs = [zlib.crc32(part.view(np.uint8).data) for part in parts]
            seen = see(first, *parts)
            spare.append(held)
            return crcs, seen

        pieces = list(pairwise([*range(begin, end, rows), end]))
        with self._reader._naming_file():
            taken = run_all(take, pieces)
            for (crcs, _), (first, last) in zip(taken, pieces, strict=True):
                sizes = [(last - first) * column.dtype.itemsize for column in self._columns]
                self._crcs = list(map(_joined_crc, self._crcs, crcs, sizes))
            if end == self._columns[0].length:
                self._compare()
        return [seen for _, seen in taken]

    def _compare(self) -> None:
        for name, column, crc in zip(self._names, self._columns, self._crcs, strict=True):
            at = column.start + column.length * column.dtype.itemsize
            if _CRC.unpack(self._reader._bytes(_CRC.size, at)) != (crc,):
                raise FormatError(f"column {name} does not match its checksum")


def is_one(path: str | os.PathLike[str] | io.BytesIO) -> bool:
    """Whether a file begins as those that `write_to` makes, damaged or not."""
    if isinstance(path, io.BytesIO):
        return True
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def name_of_source(path: str | os.PathLike[str] | io.BytesIO) -> str:
    """What messages call the source of a `Reader`."""
    return "a pickle" if isinstance(path, io.BytesIO) else os.fspath(path)


def _dtype_name(name: str, column: Array | Pieces) -> str:
    if not isinstance(name, str):
        raise ValueError(f"column {name!r}: the name must be a str")
    if column.ndim != 1 or column.dtype.name not in DTYPES:
        raise ValueError(
            f"column {name}: {column.ndim}-d {column.dtype} cannot be kept; "
            f"give one dimension of {', '.join(DTYPES)}"
        )
    return str(column.dtype.name)


def _little_endian(dtype: str) -> np.dtype[Any]:
    return np.dtype(dtype).newbyteorder("<")


def _encode(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _decode(encoded: bytes) -> tuple[dict[str, Value], list[tuple[Any, ...]]]:
    """Parse the header. Its checksum is right: what fails here was written by another program."""
    try:
        value = json.loads(encoded)
        canonical = _encode(value) == encoded
    except (ValueError, RecursionError):
        canonical = False
    if not canonical or not isinstance(value, dict) or set(value) != {"columns", "header"}:
        raise FormatError("the header is not what this format writes")
    header, listed = value["header"], value["columns"]
    if not isinstance(header, dict) or not isinstance(listed, list):
        raise FormatError("the header is not what this format writes")
    if not all(isinstance(entry, int | float | str | None) for entry in header.values()):
        raise FormatError("the header holds a value of a kind that this format does not write")
    if any(isinstance(entry, float) and not math.isfinite(entry) for entry in header.values()):
        raise FormatError("the header holds a number that is not finite")
    for entry in listed:
        match entry:
            case [str(), str(dtype), int(length)] if dtype in DTYPES and length >= 0:
                if not isinstance(length, bool):
                    continue
        raise FormatError(f"the header describes a column as {entry!r:.80}")
    if len({name for name, _, _ in listed}) != len(listed):
        raise FormatError("the header names a column twice")
    return header, [tuple(entry) for entry in listed]


def _joined_crc(first: int, second: int, size: int) -> int:
    """The CRC-32 of bytes that have the CRC `first`, followed by `size` bytes that have `second`:
    the former's polynomial is multiplied by x^(8 size)."""
    return _product(_power_of_x(8 * size), first) ^ second


@lru_cache(maxsize=64)
def _power_of_x(exponent: int) -> int:
    power, square = 1 << 31, 1 << 30  # 1 and x
    while exponent:
        if exponent & 1:
            power = _product(power, square)
        square, exponent = _product(square, square), exponent >> 1
    return power


def _product(a: int, b: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product

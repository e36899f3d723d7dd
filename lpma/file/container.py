"""Named columns and a few facts about them in one file, every byte of it under a checksum.

    file    = prefix header column*         nothing may follow the last column
    prefix  = magic[8] version[4] header_size[4] header_crc[4] prefix_crc[4]
    magic   = 89 "LPMA" 0D 0A 1A            a transfer that alters line ends or bit 7 shows here
    header  = header_size bytes of JSON: {"columns": [[name, dtype, length], ...], "header": {...}}
    column  = length * itemsize bytes, column_crc[4]

Numbers are little-endian and unsigned; the columns come in the header's order. A crc is the CRC-32
of what stands directly before it and belongs to the same part: prefix_crc of the prefix's other 20
bytes, header_crc of the header, column_crc of the column. CRC-32 finds every error of up to 32 bits
in a row, so one flipped byte is found wherever it falls: in a part, or in that part's crc. The
sizes are added up and compared with the file's before anything is allocated, which finds whatever
is cut off or added and keeps a forged length from asking for memory. The header is ASCII JSON with
sorted keys and no spaces, and is accepted in no other spelling: equal contents give equal files.

Requires one-dimensional columns of a dtype in `DTYPES`, and header values that JSON keeps exactly.
A checksum is computed beside the write or read of its column (zlib and the file calls let other
threads run), so that a large file moves at nearly the speed of the disk.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

import numpy as np

from ..arrays import Array
from ..errors import FormatError
from .atomic import Writable, atomic_write

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


def write(
    path: str | os.PathLike[str], header: Mapping[str, Value], columns: Mapping[str, Array]
) -> None:
    """Write `header` and `columns` to `path`, which then holds either all of it or what it held
    before.

    Columns are one-dimensional, of a dtype in `DTYPES` and of any byte order and stride. Raises
    ValueError on what the format cannot hold, and as `files.atomic_write` does."""
    with atomic_write(path) as file:
        write_to(file, header, columns)


def write_to(file: Writable, header: Mapping[str, Value], columns: Mapping[str, Array]) -> None:
    """Write to an open file, whose `write` takes everything or raises. See `write`."""
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
            content = np.ascontiguousarray(column, _little_endian(dtype)).view(np.uint8).data
            crc = beside.submit(zlib.crc32, content)
            file.write(content)
            file.write(_CRC.pack(crc.result()))


def read(
    path: str | os.PathLike[str] | io.BytesIO,
) -> tuple[dict[str, Value], dict[str, Array]]:
    """The header and the columns that `write` put into `path`, in the order given to it; or that
    `write_to` put into a file in memory, which is closed then.

    Raises FormatError if any byte is not as written, and OSError if the file cannot be opened or
    read."""
    name = name_of_source(path)
    with path if isinstance(path, io.BytesIO) else open(path, "rb") as file:
        if isinstance(file, io.BytesIO):
            file_bytes = len(file.getbuffer())
        else:
            file_bytes = os.fstat(file.fileno()).st_size
        try:
            header, listed = _read_head(file, file_bytes)
            columns = _read_columns(file, listed)
        except FormatError as error:
            raise FormatError(f"{name}: {error}; restore the file from a good copy") from None
    return header, columns


def is_one(path: str | os.PathLike[str] | io.BytesIO) -> bool:
    """Whether a file begins as those that `write` makes, damaged or not."""
    if isinstance(path, io.BytesIO):
        return True
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def name_of_source(path: str | os.PathLike[str] | io.BytesIO) -> str:
    """What messages call the source of `read`."""
    return "a pickle" if isinstance(path, io.BytesIO) else os.fspath(path)


def read_header(path: str | os.PathLike[str]) -> dict[str, Value]:
    """The header alone. Raises as `read` does if the prefix or the header is not as written."""
    with open(path, "rb") as file:
        try:
            return _read_head(file, os.fstat(file.fileno()).st_size)[0]
        except FormatError as error:
            raise FormatError(
                f"{os.fspath(path)}: {error}; restore the file from a good copy"
            ) from None


def _dtype_name(name: str, column: Array) -> str:
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


def _read_exactly(file: BinaryIO, target: memoryview) -> None:
    """Fill `target`, however short the single reads are."""
    done = 0
    while done < len(target):
        count = file.readinto(target[done : done + _READ_BYTES])  # type: ignore[attr-defined]
        if not count:
            raise FormatError("cut short while it was read")
        done += count


def _read_bytes(file: BinaryIO, count: int) -> bytes:
    content = bytearray(count)
    _read_exactly(file, memoryview(content))
    return bytes(content)


def _read_head(file: BinaryIO, file_bytes: int) -> tuple[dict[str, Value], list[tuple[Any, ...]]]:
    """The header, and (name, dtype, length) of each column: checked against the file's size."""
    if file_bytes < _PREFIX_BYTES:
        raise FormatError(f"only {file_bytes} bytes: not an LPMA file, or cut short")
    prefix = _read_bytes(file, _PREFIX_BYTES)
    magic, version, header_bytes, header_crc = _PREFIX.unpack_from(prefix)
    if magic != MAGIC:
        raise FormatError("does not start as an LPMA file does")
    (prefix_crc,) = _CRC.unpack_from(prefix, _PREFIX.size)
    if zlib.crc32(prefix[: _PREFIX.size]) != prefix_crc:
        raise FormatError("the prefix does not match its checksum")
    if version != VERSION:
        raise FormatError(f"format version {version}, but this release reads {VERSION}")
    if header_bytes > min(MAX_HEADER_BYTES, file_bytes - _PREFIX_BYTES):
        raise FormatError(f"a header of {header_bytes} bytes is announced: cut short, or forged")
    encoded = _read_bytes(file, header_bytes)
    if zlib.crc32(encoded) != header_crc:
        raise FormatError("the header does not match its checksum")
    header, listed = _decode(encoded)
    column_bytes = sum(length * np.dtype(dtype).itemsize + _CRC.size for _, dtype, length in listed)
    expected = _PREFIX_BYTES + header_bytes + column_bytes
    if file_bytes != expected:
        fault = "cut short" if file_bytes < expected else "something follows the last column"
        raise FormatError(f"{file_bytes} bytes where the header announces {expected}: {fault}")
    return header, listed


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


def _read_columns(file: BinaryIO, listed: list[tuple[Any, ...]]) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    checks: list[tuple[str, Future[int], int]] = []
    with ThreadPoolExecutor(1) as beside:
        for name, dtype, length in listed:
            column = np.empty(length, _little_endian(dtype))
            content = column.view(np.uint8).data
            _read_exactly(file, content)
            (announced,) = _CRC.unpack(_read_bytes(file, _CRC.size))
            checks.append((name, beside.submit(zlib.crc32, content), announced))
            columns[name] = column
    for name, crc, announced in checks:
        if crc.result() != announced:
            raise FormatError(f"column {name} does not match its checksum")
        if columns[name].dtype == bool and columns[name].view(np.uint8).max(initial=0) > 1:
            raise FormatError(f"column {name} holds a byte that is neither true nor false")
    return columns

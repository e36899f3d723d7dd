"""The dictionary of names in a file: four columns, in the order of the ids.

    file := magic[8], count u8, texts u8, bytes u8          little-endian
            kind[count] u1                                  0 integer ≥ 0, 1 negative, 2 text
            key[count] u8                                   the integer's bits; which text it is
            end[texts] u8, text[bytes]                      UTF-8, and where each text ends in it

A checkpoint has it as a file of its own, a saved graph as columns of its file (`image.py`), called
name_kinds, name_keys, name_ends and name_text.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..arguments.convert import MAX_NAME_BYTES
from ..arrays import Array
from ..errors import FormatError
from ..file.atomic import Writable
from .column import NEGATIVE, TEXT, Column

MAGIC = b"LPMAVID1"
COLUMNS = ("name_kinds", "name_keys", "name_ends", "name_text")
_DTYPES = np.dtype(np.uint8), np.dtype("<u8"), np.dtype("<u8"), np.dtype(np.uint8)
_HEAD = struct.Struct("<8sQQQ")
_CONTINUES, _INSIDE = 0xC0, 0x80  # a byte & the first is the second inside a letter of UTF-8


@dataclass(frozen=True)
class NamesImage:
    """The dictionary as it was. For any thread. The columns are those of the file."""

    kinds: Array
    keys: Array
    ends: Array
    blob: Array

    def columns(self) -> dict[str, Array]:
        """The columns by name, as a saved graph has them: see image.py."""
        ends = self.ends.view(np.uint64)
        return dict(zip(COLUMNS, (self.kinds, self.keys, ends, self.blob), strict=True))

    def write(self, file: Writable) -> None:
        """Write it as `read` reads it."""
        file.write(_HEAD.pack(MAGIC, len(self.keys), len(self.ends), len(self.blob)))
        for column in self.columns().values():
            wanted = np.ascontiguousarray(column, column.dtype.newbyteorder("<"))
            file.write(wanted.view(np.uint8).data)


def read(path: Path) -> tuple[Array, Array, Array, Array]:
    """The columns in a file that an image wrote. Raises FormatError on any other."""
    data = path.read_bytes()
    if len(data) < _HEAD.size:
        raise FormatError(f"{path}: not a vertex dictionary: cut short")
    magic, count, texts, size = _HEAD.unpack_from(data)
    if magic != MAGIC or len(data) != _HEAD.size + 9 * count + 8 * texts + size:
        raise FormatError(f"{path}: not a vertex dictionary, or cut short")
    at = _HEAD.size
    kinds = np.frombuffer(data, np.uint8, count, at)
    keys = np.frombuffer(data, "<u8", count, at + count)
    ends = np.frombuffer(data, "<u8", texts, at + 9 * count)
    return kinds, keys, ends, np.frombuffer(data, np.uint8, size, len(data) - size)


def column_of_file(kinds: Array, keys: Array, ends: Array, blob: Array) -> Column | None:
    """The names in these columns; None if they are not as a dictionary writes them."""
    if (kinds.dtype, keys.dtype, ends.dtype, blob.dtype) != _DTYPES:
        return None
    bounds = np.zeros(len(ends) + 1, np.int64)
    bounds[1:] = ends
    sizes = np.diff(bounds)
    good = (
        len(kinds) == len(keys)
        and int(kinds.max(initial=0)) <= TEXT
        and int(bounds[-1]) == len(blob)
        and bool((keys[kinds == NEGATIVE] >> np.uint64(63)).all())
        and bool(((sizes >= 1) & (sizes <= MAX_NAME_BYTES)).all())
        and np.array_equal(keys[kinds == TEXT], np.arange(len(ends), dtype=np.uint64))
        and not bool((blob[bounds[:-1]] & _CONTINUES == _INSIDE).any())
    )
    try:
        str(blob.data, "utf-8")
    except UnicodeDecodeError:
        good = False
    return Column(kinds, keys.astype(np.uint64), bounds, blob) if good else None

"""The vertex dictionary: names, which are integers of 64 bits or text, to the graph's dense ids.

Idea: ids are given in order of first appearance in the stream and never taken back, not even when a
vertex is removed. So the dictionary only grows at its end, the ids are as dense as they can be, and
what it was at any time is a prefix of what it is now. Integers are found by a compiled hash table
(`vertex_table.py`), text by a dict. The integer 5 and the text "5" are two names.

Why a replay gives the same ids. A record is looked up when it is buffered, after it was journaled,
and the journal's order is the order of buffering. Whether a row is looked up depends only on the
records before it: a bad record, a repeat and a late row are not, nor are they in a replay. Now let
a checkpoint hold the dictionary with all ids given when it was cut, or later:

1. What was waiting then is in the journal and decoded again. All its names are known, and keep
   their ids.
2. What the journal says came later comes in the same order again: a name that is not in the
   dictionary gets the next id, as it did.
3. What was never journaled may come in another order, and its names may get other ids; but no batch
   and no reply has used them.

So ids that are ahead of the graph do no harm, and a checkpoint needs no dictionary of its own age.
Nor do they harm a query: one about a name that nothing has named yet is asked about the vertex
UNKNOWN, which never has an edge; when it is asked again, the name may have an id by now, from
an update after the query, and at the query's place that vertex has no edge either.

    file := magic[8], count u8, texts u8, bytes u8          little-endian
            kind[count] u1                                  0 integer ≥ 0, 1 negative, 2 text
            key[count] u8                                   the integer's bits; which text it is
            end[texts] u8, text[bytes]                      UTF-8, and where each text ends in it

Invariants: 1. `keys` and `kinds` below `count` never change. 2. Every integer below `count` is in
the table, every text in the dict. 3. At most half of the table is filled.
"""

from __future__ import annotations

import secrets
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.batch import MAX_VERTEX, Columns, Kind
from lpma.errors import FormatError
from lpma.files import Writable

from ..errors import VertexLimitError
from ..types import Form, Name, Names, Query
from . import vertex_table as table

Array = npt.NDArray[Any]

UNKNOWN = MAX_VERTEX  # the id of every name that has none
MAX_IDS = MAX_VERTEX  # 0 … 2^32 − 3
MAGIC = b"LPMAVID1"
_HEAD = struct.Struct("<8sQQQ")
_SMALLEST = 1024


class VertexIds:
    """Not for use from two threads at once, except for what `image` returns."""

    def __init__(self, limit: int = MAX_IDS) -> None:
        self.limit = limit
        self.count = 0  # ids given: 0 … count − 1
        self._seed = np.uint64(secrets.randbits(64))
        self._kinds = np.zeros(_SMALLEST, np.uint8)
        self._keys = np.zeros(_SMALLEST, np.uint64)
        self._texts: list[str] = []
        self._id_of_text: dict[str, int] = {}
        self._slots = np.full(2 * _SMALLEST, table.EMPTY)

    def __len__(self) -> int:
        return self.count

    # Names to ids ----------------------------------------------------------------------------

    def mapped(self, batch: Columns, names: Names) -> Columns:
        """The updates with their ids in place. New names get theirs row by row, src before dst.
        Raises VertexLimitError."""
        ends = _interleaved(names.src, names.dst)
        if int(batch.kind.max(initial=0)) > Kind.DELETE:
            named = np.ones(len(ends), bool)
            named[1::2] = batch.kind <= Kind.DELETE
            ids = np.zeros(len(ends), np.uint32)
            ids[named] = self.assign(ends[named])
        else:
            ids = self.assign(ends)
        return replace(batch, src=ids[::2].copy(), dst=ids[1::2].copy())

    def assign(self, names: Array) -> Array:
        """The ids of names, uint32[n]; each name that has none gets the next one, in order.
        `names`: integers of any type, or objects, each an int or a str. Raises VertexLimitError."""
        if names.dtype == object:
            return np.fromiter(map(self._one, names), np.uint32, len(names))
        signed = names.dtype.kind == "i"
        wanted = names.astype(np.int64 if signed else np.uint64, copy=False).view(np.uint64)
        return self._integers(np.ascontiguousarray(wanted), signed)

    def _integers(self, wanted: Array, signed: bool) -> Array:
        self._make_room(len(wanted))
        ids = np.empty(len(wanted), np.uint32)
        count = table.assign(wanted, signed, *self._table(), self.count, self.limit, ids)
        self.count = count if count >= 0 else -1 - count
        if count < 0:
            raise self._full()
        return ids

    def _one(self, name: Name) -> int:
        if isinstance(name, int):
            key = np.array([name & (2**64 - 1)], np.uint64)
            return int(self._integers(key, name < 0)[0])
        found = self._id_of_text.get(name)
        if found is not None:
            return found
        if self.count >= self.limit:
            raise self._full()
        self._make_room(1)
        self._kinds[self.count], self._keys[self.count] = table.TEXT, len(self._texts)
        self._texts.append(name)
        self._id_of_text[name] = self.count
        self.count += 1
        return self.count - 1

    def _full(self) -> VertexLimitError:
        return VertexLimitError(
            f"{self.count} vertices are named, and a graph has no more ids: start another graph"
        )

    def find(self, name: Name) -> int:
        """The id of a name, UNKNOWN if nothing has named it yet."""
        if isinstance(name, str):
            return self._id_of_text.get(name, UNKNOWN)
        found = table.find(np.uint64(name & (2**64 - 1)), name < 0, *self._table())
        return UNKNOWN if found == table.EMPTY else int(found)

    def found(self, query: Query) -> Query:
        """The query with ids for names. A name that has no id gets none."""
        dst = self.find(query.dst) if query.kind is Kind.EDGE else query.dst
        after = None if query.after is None else self.find(query.after)
        return replace(query, src=self.find(query.src), dst=dst, after=after)

    def _table(self) -> tuple[np.uint64, Array, Array, Array]:
        return self._seed, self._slots, self._kinds, self._keys

    def _make_room(self, more: int) -> None:
        needed = self.count + more
        if needed > len(self._keys):
            room = 1 << (needed - 1).bit_length()
            # Copies: the old ones, which an image may hold, stay as they are.
            self._kinds = np.concatenate((self._kinds, np.zeros(room - len(self._kinds), np.uint8)))
            self._keys = np.concatenate((self._keys, np.zeros(room - len(self._keys), np.uint64)))
            self._slots = np.full(2 * room, table.EMPTY)
            table.fill(*self._table(), self.count)

    # Ids to names ----------------------------------------------------------------------------

    def names(self, ids: Any) -> Array:
        """The names of ids: uint64[n] if all are integers and none is negative, int64[n] if
        all fit that, else objects. REQUIRES: ids below `count`."""
        ids = np.asarray(ids, np.intp)
        kinds, keys = self._kinds[ids], self._keys[ids]
        if not kinds.any():
            return keys
        negative, text = kinds == table.NEGATIVE, kinds == table.TEXT
        if not text.any() and not bool((keys[~negative] >> np.uint64(63)).any()):
            return keys.view(np.int64)
        names = keys.astype(object)
        names[negative] = keys.view(np.int64)[negative].astype(object)
        names[text] = [self._texts[number] for number in keys[text].tolist()]
        return names

    @property
    def form(self) -> Form:
        """The form of a column that may hold any of the names: see `flattened`."""
        kinds, keys = self._kinds[: self.count], self._keys[: self.count]
        if bool((kinds == table.TEXT).any()):
            return "text" if bool((kinds == table.TEXT).all()) else "mixed"
        if not kinds.any():
            return "uint64"
        large = bool((keys[kinds == table.UNSIGNED] >> np.uint64(63)).any())
        return "mixed" if large else "int64"

    # Files -----------------------------------------------------------------------------------

    def image(self, old: object = None, /) -> VertexImage:
        """The dictionary as it is now, whichever ids are given from here on (invariant 1): for a
        checkpoint, see checkpointer.py. Nothing is copied, so there is no use for an old one."""
        return VertexImage(self._kinds[: self.count], self._keys[: self.count], tuple(self._texts))

    @classmethod
    def load(cls, path: Path) -> VertexIds:
        """The dictionary in a file that an image wrote. Raises FormatError on any other."""
        return cls.of(*_read(path))

    @classmethod
    def of(cls, kinds: Array, keys: Array, texts: list[str]) -> VertexIds:
        """The dictionary of these columns: see the file format."""
        ids = cls()
        ids._make_room(len(keys))
        ids._kinds[: len(keys)], ids._keys[: len(keys)] = kinds, keys
        ids.count = len(keys)
        table.fill(*ids._table(), ids.count)
        ids._texts = texts
        of_text = np.flatnonzero(kinds == table.TEXT).tolist()
        ids._id_of_text = dict(zip(texts, of_text, strict=True))
        return ids


def _interleaved(src: Array, dst: Array) -> Array:
    """src[0], dst[0], src[1] …: the order in which a stream of rows would name them."""
    kinds = {src.dtype.kind, dst.dtype.kind}
    dtype: Any = {"u": np.uint64, "i": np.int64}.get(kinds.pop()) if len(kinds) == 1 else None
    ends = np.empty(2 * len(src), dtype or object)
    ends[::2], ends[1::2] = src, dst
    return ends


@dataclass(frozen=True)
class VertexImage:
    """The dictionary as it was. For any thread."""

    kinds: Array
    keys: Array
    texts: tuple[str, ...]

    def write(self, file: Writable) -> None:
        """Write it as `VertexIds.load` reads it."""
        encoded = [text.encode() for text in self.texts]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.uint64)
        blob = b"".join(encoded)
        file.write(_HEAD.pack(MAGIC, len(self.keys), len(encoded), len(blob)))
        for column in (self.kinds, self.keys, ends):
            wanted = column.astype(column.dtype.newbyteorder("<"), copy=False)
            file.write(wanted.view(np.uint8).data)
        file.write(blob)


def _read(path: Path) -> tuple[Array, Array, list[str]]:
    data = path.read_bytes()
    try:
        magic, count, texts, size = _HEAD.unpack_from(data)
        if magic != MAGIC or len(data) != _HEAD.size + 9 * count + 8 * texts + size:
            raise ValueError("its head or its length")
        at = _HEAD.size
        kinds = np.frombuffer(data, np.uint8, count, at)
        keys = np.frombuffer(data, "<u8", count, at + count)
        ends = np.frombuffer(data, "<u8", texts, at + 9 * count).tolist()
        blob = data[len(data) - size :]
        starts = [0, *ends[:-1]]
        found = [blob[a:b].decode() for a, b in zip(starts, ends, strict=False)]
        if int((kinds == table.TEXT).sum()) != texts or len(set(found)) != texts:
            raise ValueError("its texts")
    except (ValueError, struct.error) as error:
        raise FormatError(f"{path}: not a vertex dictionary: {error}") from error
    return kinds, keys, found

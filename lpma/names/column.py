"""A column of names, as every way in makes it and the hash table reads it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arguments.convert import MAX_NAME_BYTES
from ..arrays import Array
from ..errors import BatchError

Name = int | str

MIN_NAME, MAX_NAME = -(2**63), 2**64 - 1
UNSIGNED, NEGATIVE, TEXT = 0, 1, 2  # what a key is: see table.py
MANY = 256  # texts above which pyarrow makes them

_DTYPES = [np.dtype(t).num for t in (np.uint8, np.uint64, np.int64, np.uint8)]


@dataclass(frozen=True)
class Column:
    """n names, each by its entry: names that occur often share one if the caller's column says so.
    table.py says what the fields of the entries are. No array is written to.

    codes      int64[n]: the entry of each name; None: there is one for each, in order
    is_scalar  whether the caller gave one name by itself, which counts for every row
    """

    kinds: Array
    keys: Array
    bounds: Array
    blob: Array
    codes: Array | None = None
    is_scalar: bool = False

    def __post_init__(self) -> None:
        arrays = self.kinds, self.keys, self.bounds, self.blob
        assert [array.dtype.num for array in arrays] == _DTYPES, "the kernels read these types"
        assert all(array.flags.c_contiguous for array in arrays)

    def check(self, name: str) -> None:
        """Raises BatchError unless the entries are names: a caller may have written to them."""
        texts, sizes = self.keys[self.kinds == TEXT], np.diff(self.bounds)
        codes = np.zeros(0, np.int64) if self.codes is None else self.codes
        good = (
            len(self.kinds) == len(self.keys)
            and self.kinds.max(initial=0) <= TEXT
            and (not len(texts) or texts.max() < len(sizes))
            and (not len(codes) or 0 <= codes.min() <= codes.max() < len(self.keys))
            and 0 <= self.bounds[0] <= self.bounds[-1] <= len(self.blob)
            and sizes.min(initial=0) >= 0
        )
        if not good:
            raise BatchError(f"{name}: its names were written to: make the batch again")

    def __len__(self) -> int:
        return len(self.keys if self.codes is None else self.codes)

    def stretched(self, n: int) -> Column:
        """n times the one name of a scalar; any other column as it is."""
        if not self.is_scalar:
            return self
        return replace(self, codes=np.zeros(n, np.int64), is_scalar=False)

    def take(self, rows: slice | Array) -> Column:
        """The names of these rows, by a slice, a mask or their numbers, an entry each."""
        at = rows if self.codes is None else self.codes[rows]
        return replace(self, kinds=self.kinds[at], keys=self.keys[at], codes=None, is_scalar=False)

    def followed_by(self, others: list[Column]) -> Column:
        """These names and then those of other columns, an entry each."""
        parts = [column.spread() for column in (self, *others)]
        texts = np.cumsum([0, *(len(part.bounds) - 1 for part in parts)]).astype(np.uint64)
        used = np.cumsum([0, *(int(part.bounds[-1]) for part in parts)])
        keys = [
            np.where(part.kinds == TEXT, part.keys + before, part.keys)
            for part, before in zip(parts, texts[:-1], strict=True)
        ]
        bounds = [part.bounds[1:] + before for part, before in zip(parts, used[:-1], strict=True)]
        return Column(
            np.concatenate([part.kinds for part in parts]),
            np.concatenate(keys),
            np.concatenate([self.bounds[:1], *bounds]),
            np.concatenate([part.blob[: part.bounds[-1]] for part in parts]),
        )

    def spread(self) -> Column:
        """The same with an entry for each name."""
        return self if self.codes is None else self.take(np.arange(len(self)))


_NO_TEXT = np.zeros(1, np.int64), np.empty(0, np.uint8)


def of_integers(values: Array) -> Column:
    """A column of integers, of any type."""
    wide = np.ascontiguousarray(values.astype(np.int64 if values.dtype.kind == "i" else np.uint64))
    kinds = np.zeros(len(wide), np.uint8)
    if values.dtype.kind == "i":
        np.less(wide, 0, out=kinds.view(np.bool_))
    return Column(kinds, wide.view(np.uint64), *_NO_TEXT)


def of_texts(bounds: Array, blob: Array, name: str) -> Column:
    """A column of text: see table.py. Raises BatchError."""
    n = len(bounds) - 1
    sizes = np.diff(bounds)
    wrong = (sizes < 1) | (sizes > MAX_NAME_BYTES)
    if wrong.any():
        row = int(wrong.argmax())
        raise BatchError(
            f"{name}: row {row} is text of {sizes[row]} bytes, and 1 to {MAX_NAME_BYTES} name a "
            "vertex"
        )
    return Column(np.full(n, TEXT, np.uint8), np.arange(n, dtype=np.uint64), bounds, blob)


def interleaved(src: Column, dst: Column) -> Column:
    """src[0], dst[0], src[1] …, as a batch's rows name them. REQUIRES: equal lengths."""
    texts, bytes_before = len(src.bounds) - 1, int(src.bounds[-1])
    bounds = np.concatenate((src.bounds, dst.bounds[1:] + bytes_before))
    blob = np.concatenate((src.blob[:bytes_before], dst.blob)) if len(dst.blob) else src.blob
    own = np.where(dst.kinds == TEXT, dst.keys + np.uint64(texts), dst.keys)
    if src.codes is None and dst.codes is None:
        kinds, keys = _woven(src.kinds, dst.kinds), _woven(src.keys, own)
        return Column(kinds, keys, bounds, blob)
    kinds, keys = np.concatenate((src.kinds, dst.kinds)), np.concatenate((src.keys, own))
    ours, theirs = (np.arange(len(c.keys)) if c.codes is None else c.codes for c in (src, dst))
    return Column(kinds, keys, bounds, blob, _woven(ours, theirs + len(src.keys)))


def _woven(a: Array, b: Array) -> Array:
    both = np.empty(2 * len(a), a.dtype)
    both[::2], both[1::2] = a, b
    return both


def names_of_entries(ids: Array, kinds: Array, keys: Array, bounds: Array, blob: Array) -> Array:
    """The names of ids in a dictionary with these columns: see `Names.of`."""
    ids = ids.astype(np.intp, copy=False)
    kinds, keys = kinds[ids], keys[ids]
    if not kinds.any():
        return keys
    negative, text = kinds == NEGATIVE, kinds == TEXT
    if not text.any() and not bool((keys[~negative] >> np.uint64(63)).any()):
        return keys.view(np.int64)
    names = np.empty(keys.shape, object)
    whole = ~text
    names[whole] = keys[whole].astype(object)
    names[negative] = keys.view(np.int64)[negative].astype(object)
    names[text] = _texts(keys[text], bounds, blob)
    return names


def _texts(numbers: Array, bounds: Array, blob: Array) -> Any:
    """These texts, as str. Many are gathered and made by pyarrow."""
    if len(numbers) < MANY:
        data, of_text = blob.data, numbers.astype(np.intp)
        places = zip(bounds[of_text].tolist(), bounds[of_text + 1].tolist(), strict=True)
        return [str(data[start:end], "utf-8") for start, end in places]

    pyarrow = importlib.import_module("pyarrow")
    buffers = pyarrow.py_buffer(bounds), pyarrow.py_buffer(blob)
    texts = pyarrow.LargeStringArray.from_buffers(len(bounds) - 1, *buffers)
    return texts.take(pyarrow.array(numbers)).to_numpy(zero_copy_only=False)

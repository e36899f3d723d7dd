"""An image of a graph: all that its file will hold, copied in one step that is shorter than a
batch.

It is short because it needs no fresh pages: an image that is no longer needed lends its memory to
the next. The file holds the sorted slots (keys, weights, times), which loading spreads evenly
again, and the names of a graph with names (`names/files.py`). container.py says how the bytes lie.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array, row_numbers, to_host
from ..backend.values import SlotArrays, SlotColumns
from ..cpu.columns import Survey
from ..engine.stores import Stores
from ..errors import BatchError, FormatError
from ..file import container
from ..file.atomic import Writable, atomic_write
from ..options import Options
from ..pma.keys import LOW, Slots, keys_of
from .csr import Csr

if TYPE_CHECKING:
    from ..names import Names

FORMAT = "lpma graph"
COLUMNS = ("keys", "weights", "times")
_TABLE = "`lpma load` makes one of a table, lpma.from_dataframe a graph of a data frame"
_HINTS = {  # what to do with a file of another kind
    **dict.fromkeys((".csv", ".tsv", ".txt", ".parquet", ".json", ".jsonl", ".mtx"), _TABLE),
    ".npz": "lpma.Snapshot.read_npz reads a snapshot",
}
SPARE = 4  # memory beyond this many times what an image needs is not kept
SMALL_BYTES = 1 << 20

_NOTHING = np.empty(0, np.uint8)


class Image:
    """Everything that a graph held at one version, copied to the host: any thread may write it to a
    file while the graph is in use. `Graph.image` makes it."""

    def __init__(self, header: dict[str, Any], columns: dict[str, Array], memory: Array) -> None:
        self._header = header
        self._columns = columns
        self._memory = memory

    @property
    def nbytes(self) -> int:
        """Bytes of the contents; the memory may have room for more."""
        return sum(column.nbytes for column in self._columns.values())

    @property
    def version(self) -> int:
        """The graph's version."""
        return int(self._header["version"])

    @property
    def time(self) -> int:
        """The time of the last update that it holds."""
        return int(self._header["time"])

    @property
    def slots(self) -> SlotArrays:
        """The keys, weights and times. Raises BatchError as `write`."""
        self._refuse_spent()
        held = self._columns
        return SlotArrays(held["keys"], held.get("weights"), held.get("times"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file that `Graph.save` would have written then, atomically. Raises PathError,
        OSError if the disk fails, and BatchError as `write` does."""
        with atomic_write(path) as file:
            self.write(file)

    def write(self, file: Writable) -> None:
        """Write the same to an open file, whose `write` takes everything or raises. Raises
        BatchError if the image has lent its memory to another."""
        self._refuse_spent()
        container.write_to(file, self._header, self._columns)

    def _refuse_spent(self) -> None:
        if "keys" not in self._columns:
            raise BatchError("this image has lent its memory to a later one, and holds nothing")

    def give_up(self) -> Array:
        """The memory, for another image. This image holds nothing from here on."""
        memory, self._memory = self._memory, _NOTHING
        self._columns = {}
        return memory


def take(stores: Stores, options: Options, names: Names | None, old: Image | None) -> Image:
    """See Graph.image. The caller holds the graph's lock."""
    store = stores.out
    n, width = store.num_slots, store.slot_bytes
    memory = _NOTHING if old is None else old.give_up()
    if not n * width <= memory.nbytes <= max(SPARE * n * width, SMALL_BYTES):
        del memory  # before more is allocated
        memory = store.backend.host_memory(n * width)
    columns, start = {}, 0
    for name, dtype in sorted(_dtypes_of(options).items()):  # those of eight bytes first
        end = start + n * dtype.itemsize
        columns[name] = memory[start:end].view(dtype)
        start = end
    keys, weights, times = columns["keys"], columns.get("weights"), columns.get("times")
    store.backend.copy_slots(store.segments, keys, weights, times)
    kept = {x: columns[x] for x in COLUMNS if x in columns}
    return Image(
        _header_of(stores, options),
        kept | ({} if names is None else names.image().columns()),
        memory,
    )


def write(stores: Stores, options: Options, names: Names | None, file: Writable) -> None:
    """Write to an open file what `take` would copy; piece by piece, so that it takes no memory,
    where the backend can. The caller holds the graph's lock."""
    store = stores.out
    if not store.backend.copies_in_pieces:
        take(stores, options, names, None).write(file)
        return
    columns: dict[str, Array | container.Pieces] = {
        name: container.Pieces(
            dtype, store.num_slots, partial(store.backend.column_pieces, store.segments, name)
        )
        for name, dtype in _dtypes_of(options).items()
    }
    columns |= {} if names is None else names.image().columns()
    container.write_to(file, _header_of(stores, options), columns)


def _header_of(stores: Stores, options: Options) -> dict[str, Any]:
    return {
        "format": FORMAT, **options.header(), "version": stores.version, "time": stores.time
    }  # fmt: skip


def slots_of(s: Csr) -> SlotArrays:
    """A snapshot as a graph's slots, by rising key, on the host; vertices by themselves have
    markers."""
    indptr, indices = np.asarray(to_host(s._indptr)), np.asarray(to_host(s._indices))
    rows = row_numbers(indptr, len(indices))
    alone = np.asarray(to_host(s._present)).copy()
    alone[rows] = alone[indices] = False
    markers = np.flatnonzero(alone)
    if s._added is not None:
        markers = np.union1d(markers, to_host(s._added))
    ids: Any = np.arange(s.num_rows, dtype=np.uint32)
    if s._ids is not None and s.names is None:  # rows of a graph with names are its new ids
        ids = np.asarray(to_host(s._ids))
    own, target = ids[markers], np.full(len(markers), LOW, np.uint32)
    keys = np.concatenate([keys_of(ids[rows], ids[indices]), keys_of(own, target)])
    order = np.argsort(keys, kind="stable")
    columns = []
    for column, marker in ((s._weights, 0), (s._times, s.time)):
        if column is not None:
            values = np.asarray(to_host(column))
            column = np.concatenate([values, np.full(len(markers), marker, values.dtype)])[order]
        columns.append(column)
    return SlotArrays(keys[order], *columns)


def _dtypes_of(options: Options) -> dict[str, np.dtype[Any]]:
    """The columns of a graph's file, in their order, names apart."""
    times: np.dtype[Any] | None = np.dtype(np.int64) if options.times else None
    dtypes = {"keys": np.dtype(np.uint64), "weights": options.dtype, "times": times}
    return {name: dtype for name, dtype in dtypes.items() if dtype is not None}


class GraphFile:
    """The file of a graph, on the disk or in memory, open: what its header says of its columns.
    Raises FormatError on any other, and OSError."""

    def __init__(self, path: str | os.PathLike[str] | io.BytesIO) -> None:
        self.name = name = container.name_of_source(path)
        try:
            self.reader = reader = container.Reader(path)
        except FormatError:
            hint = _HINTS.get(os.path.splitext(name)[1].lower())
            if hint is None or container.is_one(path):
                raise
            raise FormatError(f"{name}: not a saved graph: {hint}") from None
        if reader.header.get("format") != FORMAT:
            raise FormatError(f"{name}: a file of this package, but not a saved graph")
        numbers: Any = reader.header
        try:
            self.options = Options.of_header(reader.header)
            dtypes = _dtypes_of(self.options)
            self.columns = list(dtypes)
            found = [reader.columns[name] for name in dtypes]
            self.version, self.time = int(numbers["version"]), int(numbers["time"])
        except (KeyError, TypeError, ValueError, BatchError) as error:
            raise FormatError(f"{name}: not a graph this version knows ({error})") from None
        if found[0].dtype != np.uint64:
            raise FormatError(f"{name}: the keys are {found[0].dtype}, not uint64")
        for called, column in zip(dtypes, found, strict=True):
            if (column.dtype, column.length) != (dtypes[called], found[0].length):
                raise FormatError(f"{name}: the {called} do not go with the keys")

    def check(self, slots: Slots) -> None:
        """Raise FormatError unless these are a graph's. Checksums say that a file is what was
        written; this checks that it was a graph."""
        if not slots.rise:
            raise FormatError(f"{self.name}: the keys do not strictly rise")
        if self.version < 0 or not (slots.are_sound and slots.are_symmetric):
            raise FormatError(f"{self.name}: the contents are not those of a graph")
        names = self.reader.columns.get("name_kinds")
        if self.options.names and names is not None and slots.largest >= names.length:
            raise FormatError(f"{self.name}: a vertex has no name")

    def names(self, read: Callable[[str], Array], is_late: bool = False) -> Names | None:
        """What the vertices go by, or None. read: a column by its name; is_late: see
        Names.of_columns."""
        if not self.options.names:
            return None
        from ..names import Names
        from ..names.files import COLUMNS as OF_NAMES

        if not self.reader.columns.keys() >= set(OF_NAMES):
            raise FormatError(f"{self.name}: its vertices have names, which are not there")
        kinds, keys, ends, text = map(read, OF_NAMES)
        return Names.of_columns(kinds, keys, ends, text, self.name, is_late)


class StoredSlots:
    """The slots of a graph's file, a backend.values.SlotSource: each pass reads and surveys them
    anew. Raises FormatError and OSError. ENSURES: whatever the file is, a pass that comes to its
    end has read a graph's."""

    facts: Slots

    def __init__(self, file: GraphFile) -> None:
        self._file, self._reader = file, file.reader
        self.total = file.reader.columns["keys"].length

    def read(self, first: int, last: int) -> SlotColumns:
        names, rows = self._file.columns, last - first
        if first == 0:
            self._scan, self._seen = container.Scan(self._reader, names), list[Any]()
            self._survey, self._memory = Survey(self._file.options.directed), list[Array]()

        def see(_: int, *parts: Array) -> Any:
            return self._survey.of(**dict(zip(names, parts, strict=True)))

        if not self._memory or len(self._memory[0]) < rows:
            self._memory = [np.empty(rows, self._reader.columns[name].dtype) for name in names]
        columns = [memory[:rows] for memory in self._memory]  # again: fresh pages are expensive
        self._seen += self._scan.read_to(last, see, columns)
        if last == self.total:
            self._memory = []
            self.facts = self._survey.joined(self._seen)
            self._file.check(self.facts)
        held = dict(zip(names, columns, strict=True))
        return held["keys"], held.get("weights"), held.get("times")

"""A snapshot as the bytes of an Arrow stream or of a NumPy archive, in pieces that are not copied.

Idea: both formats hold arrays as they are, between a few bytes of their own. A writer of either,
given a file that only keeps what is written to it, yields pieces: views of the snapshot's arrays,
and those few bytes. Their lengths are known before the first byte leaves.

The Arrow stream has one row for each row of the CSR, in record batches of about `BATCH_ENTRIES`
entries; a row is never cut. `indptr` travels as the offsets of the lists, so that a reader has a
CSR without a copy:

    vertex           uint32, or names (in two columns where they are of two types: names/forms.py);
                     absent where row i is the vertex with id i
    out              large_list<struct<dst: uint32, weight?: float, time?: int64>>; null where the
                     row is no vertex
    metadata         version, time, directed, edges, rows and, of a bipartite graph, left, each
                     with "lpma." before it

`dst` are rows, counted from 0 over the whole stream. Of an undirected graph both directions are
there. The archive is what `Snapshot.write_npz` writes, and `Snapshot.read_npz` and `lpma load`
read.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma import Snapshot
from lpma.arrays import on_device, to_host
from lpma.snapshot.columns import ARRAYS
from lpma.snapshot.export.archives import fields_of
from lpma.snapshot.export.tables import vertex_columns

from .media import ARROW

Array = npt.NDArray[Any]

BATCH_ENTRIES = 1 << 20


class Pieces:
    """A file that keeps what is written, without a copy. check: called at each write."""

    closed = False

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check
        self.views: list[memoryview] = []
        self.size = 0  # bytes in all

    def write(self, data: Any) -> int:
        self._check()
        view = memoryview(data).cast("B")
        if view.nbytes:
            self.views.append(view)
            self.size += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        pass

    def tell(self) -> int:
        return self.size

    def chunks(self, size: int) -> Iterator[memoryview]:
        """What was written, in views of at most `size` bytes; small ones are joined."""
        small: list[memoryview] = []
        held = 0
        for view in self.views:
            if held + view.nbytes <= size // 16:
                small.append(view)
                held += view.nbytes
                continue
            if small:
                yield memoryview(b"".join(small))
                small, held = [], 0
            for start in range(0, view.nbytes, size):
                yield view[start : start + size]
        if small:
            yield memoryview(b"".join(small))


def pieces_of(s: Snapshot, form: str, check: Callable[[], None] = lambda: None) -> Pieces:
    """The bytes of a snapshot, which is kept by them. check: called before each part of it; what it
    raises ends the work. REQUIRES: it is on the host. Raises MissingPackage without pyarrow."""
    found = Pieces(check)
    (_write_arrow if form == ARROW else _write_npz)(s, found)
    return found


def on_host(s: Snapshot) -> Snapshot:
    """The snapshot with its arrays on the host; itself on the CPU."""
    if not on_device(s._indptr):
        return s
    return s._with(**{name: to_host(getattr(s, f"_{name}")) for name in ARRAYS})


# Arrow ---------------------------------------------------------------------------------------


def _write_arrow(s: Snapshot, file: Pieces) -> None:
    import pyarrow

    vertices = {}
    if s.names is not None or s._ids is not None:
        rows = np.arange(s.num_rows, dtype=np.uint32)
        vertices = {f"vertex{n}": column for n, column in vertex_columns(pyarrow, s, rows).items()}
    entries = _entries(pyarrow, s)
    lists = pyarrow.large_list(entries.type)
    fields = [(name, column.type) for name, column in vertices.items()]
    schema = pyarrow.schema([*fields, ("out", lists)], metadata=_metadata(s))
    absent = None if s._added is None else ~np.asarray(s._present)
    if absent is not None and not absent.any():
        absent = None
    with pyarrow.ipc.new_stream(pyarrow.PythonFile(file, "w"), schema) as writer:
        for start, stop in _cuts(s._indptr):
            columns = [column[start:stop] for column in vertices.values()]
            mask = None if absent is None else absent[start:stop]
            columns.append(_lists(pyarrow, s._indptr[start : stop + 1], entries, lists, mask))
            writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=schema))


def _entries(pyarrow: Any, s: Snapshot) -> Any:
    """The entries of all rows, one after the other, as views of the snapshot's arrays."""
    columns = {"dst": s._indices, "weight": s._weights, "time": s._times}
    held = {name: pyarrow.array(column) for name, column in columns.items() if column is not None}
    return pyarrow.StructArray.from_arrays(list(held.values()), list(held))


def _lists(pyarrow: Any, indptr: Array, entries: Any, kind: Any, absent: Array | None) -> Any:
    """The lists of some rows; their entries are a view."""
    first, last = int(indptr[0]), int(indptr[-1])
    offsets = pyarrow.py_buffer(indptr if first == 0 else indptr - first)
    valid, nulls = None, 0
    if absent is not None:
        nulls = int(absent.sum())
        if nulls:
            valid = pyarrow.py_buffer(np.packbits(~absent, bitorder="little"))
    return pyarrow.Array.from_buffers(
        kind, len(indptr) - 1, [valid, offsets], nulls, children=[entries[first:last]]
    )


def _cuts(indptr: Array) -> Iterator[tuple[int, int]]:
    """Stretches of rows with about BATCH_ENTRIES entries each, and at most as many rows."""
    start, rows = 0, len(indptr) - 1
    while start < rows:
        stop = int(np.searchsorted(indptr, indptr[start] + BATCH_ENTRIES, "right")) - 1
        stop = min(max(stop, start + 1), start + BATCH_ENTRIES, rows)
        yield start, stop
        start = stop


def _metadata(s: Snapshot) -> dict[str, str]:
    facts = {"version": s.version, "time": s.time, "edges": s.num_edges, "rows": s.num_rows}
    facts |= {} if s.left is None else {"left": s.left}
    return {"lpma.directed": str(s.directed).lower()} | {
        f"lpma.{name}": str(value) for name, value in facts.items()
    }


# NumPy ---------------------------------------------------------------------------------------


def _write_npz(s: Snapshot, file: Pieces) -> None:
    """As np.savez does, whose file cannot be one that is not sought in without copies."""
    form: Any = np.lib.format
    with zipfile.ZipFile(_Unseekable(file), "w", zipfile.ZIP_STORED, allowZip64=True) as archive:  # type: ignore[call-overload]
        for name, value in fields_of(s).items():
            array = np.asarray(value)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                form.write_array_header_1_0(member, form.header_data_from_array_1_0(array))
                if array.size:
                    member.write(array.reshape(-1).view(np.uint8).data)


class _Unseekable:
    """What zipfile writes to as to a pipe: a member's checksum then follows it."""

    def __init__(self, file: Pieces) -> None:
        self.write, self.flush = file.write, file.flush

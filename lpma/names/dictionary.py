"""The dictionary of names: text and integers of 64 bits, to the graph's dense ids and back.

Idea: ids are given in the order of first insertion and never taken back, not even when a vertex is
removed. So the dictionary only grows at its end, and what it was at any time is a prefix of what it
is now: a copy of it (for a snapshot, a file, a checkpoint) is a length. All names are in one
compiled hash table (`table.py`). The integer 5 and the text "5" are two names.

A batch that is refused after its names were looked up gives back the ids that it made (`shrink`).

Why a stream that is replayed gives the same ids. A record is looked up when it is buffered, after
it was journaled, in the journal's order. Whether a row is looked up depends only on the records
before it. Now let a checkpoint hold the dictionary with all ids given when it was cut, or later:

1. What was waiting then is in the journal and decoded again. All its names are known, and keep
   their ids.
2. What the journal says came later comes in the same order again: a name that is not in the
   dictionary gets the next id, as it did.
3. What was never journaled may come in another order, and its names may get other ids; but no batch
   and no reply has used them.

So ids that are ahead of the graph do no harm, and a checkpoint needs no dictionary of its own age.
Nor do they harm a query or a deletion: one about a name that nothing has inserted yet means the
vertex UNKNOWN, which never has an edge; nor has, at that place, the vertex of an id from a later
insertion.

Invariants: 1. What an image or a frozen dictionary can see never changes: what lies below the
counts that it was made with. 2. Every id below `count` is in the table. 3. At most half of it is
filled."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..arguments.convert import MAX_NAME_BYTES, MAX_VERTEX, as_array
from ..arrays import Array, places_of, to_host
from ..errors import BatchError, FormatError, TooManyNames, VertexError
from .column import MAX_NAME, TEXT, Column, Name, names_of_entries
from .files import NamesImage, column_of_file, read
from .forms import Form, flattened, form_of_keys
from .given import column_of, name_of

UNKNOWN = MAX_VERTEX  # the id of every name that has none
MAX_IDS = MAX_VERTEX  # 0 … 2^32 − 3
_SMALLEST = 1024
_NO_DICTIONARY = "{}: its columns are no dictionary of names"
MOST_KNOWN = 1 << 16


class Room(NamedTuple):
    """The table and the dictionary's columns, which have room for more names than there are.
    Growing replaces all at once, so that a thread that reads never sees a mixture."""

    seed: np.uint64
    slots: Array
    kinds: Array
    keys: Array
    bounds: Array
    blob: Array


class Names:
    """The names of a graph's vertices: `Graph.names`. It belongs to the graph, which gives ids;
    from outside it is read. Not for use from two threads at once; what `frozen` and `image` return
    is.

    >>> g = lpma.Graph(names=True, device="cpu")
    >>> g.insert(["alice", "bob"], ["bob", 7])
    >>> len(g.names), g.names.of([0, 1, 2]).tolist()
    (3, ['alice', 'bob', 7])
    >>> g.names.find("bob"), g.names.find("carol")
    (1, None)
    """

    def __init__(self, limit: int = MAX_IDS) -> None:
        from . import table  # with Numba, which takes a third of a second to import

        self._table = table
        self.limit = limit
        self.has_graph = False  # whether the lock of a graph guards it
        self._known: dict[Name, int] = {}  # what was asked for lately, one by one
        self._counts = np.zeros(2, np.int64)  # ids given: 0 … count − 1; how many of them are text
        self._room = Room(
            np.uint64(secrets.randbits(64)), np.full(2 * _SMALLEST, table.EMPTY),
            np.zeros(_SMALLEST, np.uint8), np.zeros(_SMALLEST, np.uint64),
            np.zeros(_SMALLEST + 1, np.int64), np.zeros(8 * _SMALLEST, np.uint8),
        )  # fmt: skip
        # The columns of a file, and its name, while they are not in the table yet.
        self._late: tuple[Column, str] | None = None

    def __len__(self) -> int:
        """How many names have an id, whether their vertices are still in the graph or not."""
        return int(self._counts[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the table and the columns."""
        return sum(array.nbytes for array in self._room)

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        """kinds, keys, bounds, blob, with room at their ends: see the table's grammar. Name i is
        the integer keys[i]; where kinds[i] is TEXT, it is number keys[i] of the texts, whose UTF-8
        lies in the blob between two bounds. Not to be written to."""
        return self._room[2:]

    # Names to ids ----------------------------------------------------------------------------

    def find(self, name: Name) -> int | None:
        """The id of a name, None if it has none. Raises BatchError for what is no name."""
        id = self.id_of(name, "name")
        return None if id == UNKNOWN else id

    def id_of(self, name: Any, argument: str) -> int:
        """The id of one name, UNKNOWN if it has none. Raises BatchError, naming the argument."""
        return self._remembered(name, argument, self.look_up)

    def give(self, name: Any, argument: str) -> int:
        """The id of one name, which gets one if it has none. Raises BatchError."""
        return self._remembered(name, argument, self.assign)

    def _remembered(self, name: Any, argument: str, call: Callable[[Column], Array]) -> int:
        """The id that `call` finds, kept for the next time if it is one."""
        known = self._known.get(name) if type(name) in (int, str) else None
        if known is not None:
            return known
        name = name_of(name, argument)
        id = int(call(column_of(name, "name"))[0])
        if id != UNKNOWN:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[name] = id
        return id

    def look_up(self, names: Column) -> Array:
        """uint32[n]: the ids of names, UNKNOWN for each that has none. From any thread."""
        ids, gives = np.empty(len(names.keys), np.uint32), np.zeros(len(names.keys), np.bool_)
        self._probe(0, names, gives, self._tags(names), ids)
        return ids if names.codes is None else ids[names.codes]

    def assign(self, names: Column, gives: Array | None = None) -> Array:
        """uint32[n]: the ids of names; each name that has none gets the next one, in order. gives:
        bool[n], False where a name is only looked up, and is UNKNOWN if it has no id at that place.
        Raises TooManyNames; then some have their ids."""
        if names.codes is None or gives is not None:
            names = names.spread()
            given = np.ones(len(names), np.bool_) if gives is None else gives
            return self._assign(names, given, self._tags(names))
        # The tags are computed where the entries lie in order: a text elsewhere is in no cache.
        tags, codes = self._tags(names), np.ascontiguousarray(names.codes)
        seen, order = np.zeros(len(tags), np.uint8), np.empty(len(tags), np.int64)
        used = order[: self._table.first_seen(id(codes), len(codes), id(seen), id(order))]
        ids = np.empty(len(names.keys), np.uint32)
        column = Column(names.kinds[used], names.keys[used], names.bounds, names.blob)
        ids[used] = self._assign(column, np.ones(len(used), np.bool_), tags[used])
        of_rows: Array = ids[names.codes]
        return of_rows

    def _assign(self, names: Column, gives: Array, tags: Array) -> Array:
        ids, done = np.empty(len(names), np.uint32), 0
        while True:
            done = self._probe(done, names, gives, tags, ids)
            if done == len(ids):
                return ids
            if len(self) >= self.limit:
                raise TooManyNames(
                    f"{len(self)} vertices are named, and a graph has no more ids: start another "
                    "graph"
                )
            self._grow()

    def _tags(self, names: Column) -> Array:
        """uint32[n]: the tag of each entry."""
        if self._late is not None:
            self._enter(*self._late)
        tags = np.empty(len(names.keys), np.uint32)
        self._table.hash(*_ids(names), len(tags), self._room.seed, id(tags))
        return tags

    def _probe(self, done: int, names: Column, gives: Array, tags: Array, ids: Array) -> int:
        """See `table.assign`."""
        room = self._room  # once: another thread may make it grow
        there: int = self._table.assign(
            done, len(tags), *_ids(names), id(gives), id(tags), id(room.slots),
            len(room.slots) - 1, *_ids(room), id(self._counts), min(len(room.keys), self.limit),
            len(room.bounds) - 1, len(room.blob), id(ids),
        )  # fmt: skip
        return there

    def _grow(self) -> None:
        """Make room for at least one name more: twice what there is now, where that is full. The
        old arrays, which others may look at, stay as they are."""
        room, (count, texts) = self._room, self._counts.tolist()
        kinds, keys, slots = room.kinds, room.keys, room.slots
        if count == len(keys):
            kinds, keys = _longer(kinds, 2 * count), _longer(keys, 2 * count)
            slots = np.full(4 * count, self._table.EMPTY)
            self._table.enter(id(room.slots), len(room.slots), id(slots), len(slots) - 1)
        bounds, blob = room.bounds, room.blob
        if texts + 1 == len(bounds):
            bounds = _longer(bounds, 2 * texts + 1)
        if len(blob) - int(bounds[texts]) < MAX_NAME_BYTES:
            blob = _longer(blob, 2 * len(blob))
        self._room = Room(room.seed, slots, kinds, keys, bounds, blob)

    def shrink(self, count: int) -> None:
        """Take back the ids from `count` on. REQUIRES: nothing has used them, nor seen them."""
        if count == len(self):
            return
        self._known.clear()
        room = self._room
        last = len(room.slots) - 1
        self._table.remove(count, len(self), *_ids(room), room.seed, id(room.slots), last)
        self._counts[1] -= int((room.kinds[count : len(self)] == TEXT).sum())
        self._counts[0] = count

    # Ids to names ----------------------------------------------------------------------------

    def of(self, ids: Any) -> Array:
        """The names of ids, NumPy's on every device: uint64[n] if all are integers and none is
        negative, int64[n] if all fit that, else objects, each an int or a str. ids: integers below
        len(self), an array or a list. Raises IndexError on one that is none, BatchError on anything
        else."""
        at = places(ids, len(self), "ids")
        room = self._room  # after the count: it holds at least as many
        return names_of_entries(at, room.kinds, room.keys, room.bounds, room.blob)

    def copy(self) -> Names:
        """A dictionary of its own with the same names.

        >>> g = lpma.from_edges("alice", "bob", device="cpu")
        >>> g.copy().names.find("bob")
        1
        """
        other = Names(self.limit)
        room = self._room
        other._room = Room(room.seed, *(column.copy() for column in room[1:]))
        other._counts, other._late = self._counts.copy(), self._late
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the columns of a file, from which the table is made anew."""
        columns = self.image().columns().values()
        return Names.of_columns, (*columns, "a pickle"), {"limit": self.limit}

    def form(self, ids: Array) -> Form:
        """The form of a column that may hold any of these ids' names."""
        return form_of_keys(self._room.kinds[ids], self._room.keys[ids])

    def frozen(self, ids: Array | None = None, rows: int | None = None) -> FrozenNames:
        """What so many rows go by (None: all names that there are), whichever ids are given from
        here on. ids: what the rows stand for; None: themselves."""
        return FrozenNames(self, len(self) if rows is None else rows, ids)

    # Files -----------------------------------------------------------------------------------

    def image(self, old: object = None, /) -> NamesImage:
        """What there is to keep now, whichever ids are given from here on (invariant 1). Nothing is
        copied, so there is no use for an old one."""
        room, (count, texts) = self._room, self._counts.tolist()
        bounds = room.bounds[: texts + 1]
        return NamesImage(
            room.kinds[:count], room.keys[:count], bounds[1:], room.blob[: int(bounds[-1])]
        )

    @classmethod
    def load(cls, path: Path) -> Names:
        """The dictionary in a file that an image wrote. Raises FormatError on any other."""
        return cls.of_columns(*read(path), os.fspath(path))

    @classmethod
    def of_columns(
        cls, kinds: Array, keys: Array, ends: Array, blob: Array, file: str, is_late: bool = False
    ) -> Names:
        """The dictionary with these columns: see files.py. is_late: its table, which shows whether
        a name occurs twice, is made when one is first looked up. Raises FormatError."""
        names, column = cls(), column_of_file(kinds, keys, ends, blob)
        if column is None:
            raise FormatError(_NO_DICTIONARY.format(file))
        names._room = names._room._replace(
            kinds=column.kinds, keys=column.keys, bounds=column.bounds, blob=column.blob
        )
        names._counts[:] = len(column), len(column.bounds) - 1
        names._late = column, file
        if not is_late:
            names._enter(column, file)
        return names

    def _enter(self, column: Column, file: str) -> None:
        made = Names(self.limit)
        made._room = made._room._replace(seed=self._room.seed)  # of whoever enters them meanwhile
        if not np.array_equal(made.assign(column), np.arange(len(column))):
            raise FormatError(_NO_DICTIONARY.format(file))
        self._room, self._counts = made._room, made._counts
        self._late = None  # at last: other threads may look names up


def _ids(names: Column | Room) -> tuple[int, int, int, int]:
    """The id() of each array of a column, or of the dictionary, for the kernels."""
    return id(names.kinds), id(names.keys), id(names.bounds), id(names.blob)


def _longer(array: Array, size: int) -> Array:
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer


class FrozenNames:
    """What the rows of a snapshot go by: `Snapshot.names`. It never changes, and may be read from
    any thread.

    >>> g = lpma.Graph(names=True, device="cpu")
    >>> g.insert("alice", "bob")
    >>> names = g.snapshot().names
    >>> g.insert("alice", "carol")                  # not in the snapshot
    >>> len(names), names.of([1, 0]).tolist(), names.find("carol")
    (2, ['bob', 'alice'], None)
    """

    def __init__(self, names: Names, count: int, ids: Array | None = None) -> None:
        self._names = names
        self._count = count
        self._device_ids = ids

    @cached_property
    def _ids(self) -> Array | None:
        """uint32, rising: the id behind each row; None: the row itself."""
        return None if self._device_ids is None else np.asarray(to_host(self._device_ids))

    def __len__(self) -> int:
        """How many names there are: of a compact snapshot one for each row."""
        return self._count if self._device_ids is None else len(self._device_ids)

    def of(self, rows: Any) -> Array:
        """The names of these rows, NumPy's on every device: uint64[n] if all are integers and none
        is negative, int64[n] if all fit that, else objects, each an int or a str. rows: integers,
        an array or a list. Raises IndexError on one that is none, BatchError on anything else."""
        rows = places(rows, len(self), "rows")
        return self._names.of(rows if self._ids is None else self._ids[rows])

    def with_rows(self, ids: Array) -> FrozenNames:
        """The same names for other rows. ids: uint32, rising: the id behind each row."""
        return FrozenNames(self._names, self._count, ids)

    @cached_property
    def form(self) -> Form:
        """Of the columns that hold any of these names: see forms.py."""
        return self._names.form(np.arange(self._count) if self._ids is None else self._ids)

    def columns(self, end: str, rows: Array) -> dict[str, Array]:
        """The names of rows as columns that a file of typed columns takes, the first called `end`:
        see forms.py. They have the same names and types whatever the rows."""
        return flattened(end, self.of(rows), self.form)

    def find(self, name: Name, what: str = "name") -> int | None:
        """The row of a name; None if no row goes by it. Raises BatchError for what is no name."""
        row = int(self.look_up(column_of(name_of(name, what), what))[0])
        return None if row < 0 else row

    def look_up(self, names: Column) -> Array:
        """int64[n]: the rows of names, -1 for each that no row goes by."""
        ids = self._names.look_up(names).astype(np.int64)
        if self._ids is None:
            return np.where(ids < self._count, ids, -1)
        return places_of(ids, self._ids)

    def row(self, name: Any, what: str = "vertex") -> int:
        """The row of a name. Raises VertexError if there is none; `what` names the argument."""
        row = self.find(name, what)
        if row is not None:
            return row
        asked, hint = name_of(name, what), ""
        other: Name | None = None
        if isinstance(asked, int):
            other, hint = str(asked), "; the text is there, in quotes"
        elif asked.isascii() and asked.isdigit() and int(asked) <= MAX_NAME:
            other, hint = int(asked), "; the integer is there, without quotes"
        if other is None or self.find(other) is None:
            hint = ""
        raise VertexError(f"{what}: there is no vertex {asked!r:.60}{hint}")


def places(given: Any, count: int, name: str) -> Array:
    """intp[n]: integers from 0 to count - 1. Raises IndexError on others, or BatchError."""
    column = np.atleast_1d(to_host(as_array(given, name)))
    if column.size and column.dtype.kind not in "iu":
        raise BatchError(f"{name}: integers from 0 on, not {column.dtype}")
    if column.size and not 0 <= int(column.min()) <= int(column.max()) < count:
        raise IndexError(f"{name} go from 0 to {count - 1}")
    return column.astype(np.intp, copy=False)

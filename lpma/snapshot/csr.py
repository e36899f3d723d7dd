"""The arrays of a snapshot, and what is derived from them: what exports and analyses read.

Snapshot (snapshot.py) adds the exports, which read nothing else.

Each array has two attributes: its name, as callers get it (read_only.py), and the name after an
underscore, as this project's kernels read it: nobody writes to that, since later snapshots and
views share it. `Csr._trusted` takes arrays that nobody else has; the constructor is for callers,
and checks and copies its arguments.

A writable copy (`Csr.copy`) has the arrays under their names only. They are checked whenever they
are read with an underscore, and nothing is cached in its views.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..arrays import Array, array_module, count_true, device_of, on_device
from . import checks, columns, presence, row_versions
from .columns import ARRAYS, FACTS, KEPT, OF_EDGES, REQUIRED, ROWS
from .deferred import KEY as LATE
from .deferred import NOT_YET, DeferredColumns, Taker
from .read_only import copied, hand_out

if TYPE_CHECKING:
    from ..names import FrozenNames


TAKER = "_taker"  # the attribute that says for which stream of a device a snapshot was taken
WRITABLE = "_is_writable"  # the attribute of a writable copy


@dataclass(eq=False, init=False)
class Csr:
    """A graph in compressed sparse rows. `Snapshot` says what the fields are."""

    indptr: Array
    indices: Array
    weights: Array | None
    times: Array | None
    num_edges: int
    version: int
    time: int
    directed: bool
    ids: Array | None
    added: Array | None
    names: FrozenNames | None
    left: int | None
    views: dict[str, Any] = field(init=False, repr=False)  # derived, cached by algorithms

    def __init__(
        self,
        indptr: Array,
        indices: Array,
        weights: Array | None,
        times: Array | None,
        num_edges: int,
        version: int,
        time: int,
        directed: bool = True,
        ids: Array | None = None,
        added: Array | None = None,
        names: FrozenNames | None = None,
        left: int | None = None,
    ) -> None:
        """Check the arrays, and keep copies of them. Raises BatchError, which says what is wrong.

        Arrays that are the attributes of another snapshot have been checked, and are shared."""
        given = (indptr, indices, weights, times, ids, added)
        arrays: dict[str, Any] = dict(zip(ARRAYS, given, strict=True))
        checks.check_types(arrays)
        checks.check_facts(num_edges, version, time, directed, left)
        num_edges, version, time = int(num_edges), int(version), int(time)
        kept = _rows_checked(indptr, indices, num_edges, bool(directed))
        if kept is None:
            checks.check_graph(indptr, indices, num_edges, bool(directed))
            kept = copied(indptr), copied(indices)
        checks.check_lengths(len(indptr) - 1, len(indices), arrays, names)
        vars(self).update(
            zip(KEPT, (*kept, *map(_own, given[2:])), strict=True),
            num_edges=num_edges, version=version, time=time, directed=bool(directed), names=names,
            left=None if left is None else int(left), views={},
        )  # fmt: skip

    @classmethod
    def _trusted(
        cls, indptr: Any, indices: Any, weights: Any, times: Any, num_edges: int, version: int,
        time: int, directed: bool = True, *, ids: Any = None, added: Any = None, names: Any = None,
        left: int | None = None, views: dict[str, Any] | None = None,
        late: DeferredColumns | None = None, taker: Taker | None = None,
    ) -> Self:  # fmt: skip
        """A snapshot of arrays that nobody writes to and that are as `checks` wants them. Those
        that are NOT_YET are made when they are first read: rows by the Lineage in `views`, columns
        by `late`. taker: for which stream of a device it was taken."""
        made = object.__new__(cls)
        state = vars(made)
        if indptr is not NOT_YET:
            state["_indptr"], state["_indices"] = indptr, indices
        if weights is not NOT_YET:
            state["_weights"], state["_times"] = weights, times
        if late is not None:
            state[LATE] = late
        if taker is not None:
            state[TAKER] = taker
        state["_ids"], state["_added"] = ids, added
        state["num_edges"], state["version"], state["time"] = num_edges, version, time
        state["directed"], state["names"], state["left"] = directed, names, left
        state["views"] = {} if views is None else views
        return made

    def _with(self, **changes: Any) -> Self:
        """The same snapshot with some arguments of `_trusted` changed. It shares the views only if
        nothing but the names is changed."""
        if changes.keys() == {"names"}:
            made = object.__new__(type(self))
            vars(made).update(vars(self) | changes)
            return made
        same: dict[str, Any] = {name: getattr(self, f"_{name}") for name in ARRAYS}
        return self._trusted(**same | {name: getattr(self, name) for name in _FACTS} | changes)

    def copy(self) -> Self:
        """A snapshot with arrays of its own where these lie. They may be written to and replaced,
        and so may its other attributes. Algorithms and exports read it as it then is: each call
        checks it, raises BatchError if it is no graph any more, and keeps nothing for the next.

        >>> g = lpma.Graph(device="cpu")
        >>> g.insert([0, 1], [1, 2], weight=[2.0, 4.0])
        >>> s = g.snapshot().copy()
        >>> s.weights /= 2
        >>> s.to_edge_index().tolist(), s.weights
        ([[0, 1], [1, 2]], array([1., 2.], dtype=float32))
        """
        made = object.__new__(type(self))
        taker = vars(self).get(TAKER)
        for name, kept in zip(ARRAYS, KEPT, strict=True):
            array = getattr(self, kept)
            vars(made)[name] = None if array is None else _copied_for(taker, array)
        if taker is not None:
            taker.arrive()
        facts = {name: getattr(self, name) for name in _FACTS}
        vars(made).update(facts | {WRITABLE: True, "views": _Forgetful()})
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        """Only a writable copy has attributes that can be set: `s.weights *= 2` does so, too."""
        if WRITABLE not in vars(self) or name not in (*ARRAYS, *_FACTS):
            raise FrozenInstanceError(
                f"{name}: a {type(self).__name__} never changes; write to its copy()"
            )
        vars(self)[name] = value

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"{name}: a {type(self).__name__} never changes")

    def _checked(self, name: str) -> Any:
        """An array of a writable copy. Raises BatchError if what was written to it is no graph."""
        arrays = {name: vars(self)[name] for name in ARRAYS}
        checks.check_types(arrays)
        checks.check_facts(self.num_edges, self.version, self.time, self.directed, self.left)
        indptr, indices = arrays["indptr"], arrays["indices"]
        if name in ROWS:
            checks.check_graph(indptr, indices, self.num_edges, self.directed)
        checks.check_lengths(len(indptr) - 1, len(indices), arrays, self.names)
        return arrays[name[1:]]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled or copied: late arrays are made, and the lineage is dropped."""
        if WRITABLE in vars(self):  # it has nothing but what it was given
            state = dict(vars(self))
        else:
            for name in (*ROWS, *OF_EDGES):
                getattr(self, name)  # which makes it, if it is late
            left_out = {TAKER, "present", *ARRAYS}
            state = {name: value for name, value in vars(self).items() if name not in left_out}
        views = {name: view for name, view in self.views.items() if name != row_versions.KEY}
        return state | {"views": type(self.views)(views)}

    @property
    def num_rows(self) -> int:
        """Rows: 1 + the largest id present (or the number of ids, when compact)."""
        link = row_versions.lineage_of(self)
        if link is not None:
            return link.state.rows.num_rows
        state = vars(self)
        return len(state["indptr"] if WRITABLE in state else state["_indptr"]) - 1

    @property
    def num_vertices(self) -> int:
        """Vertices: the rows that are `present`."""
        if "num_vertices" not in self.views:
            with device_of(self._indptr):
                return int(self.views.setdefault("num_vertices", count_true(self._present)))
        return int(self.views["num_vertices"])

    @property
    def _present(self) -> Array:
        """bool[n], on the snapshot's device: whether each row is a vertex. One pass over `indices`
        at the first call, kept from then on."""
        found: Array | None = self.views.get("present")
        if found is None:
            indptr, added = self._indptr, self._added
            with device_of(indptr):
                if added is None:
                    found = array_module(indptr).ones(self.num_rows, np.bool_)
                else:
                    found = presence.of_rows(indptr, self._indices, not self.directed, added)
            found = self.views.setdefault("present", found)
        return found

    if TYPE_CHECKING:
        present: Array
        _indptr: Array
        _indices: Array
        _weights: Array | None
        _times: Array | None
        _ids: Array | None
        _added: Array | None


_FACTS = (*FACTS, "names")


class _Rows(NamedTuple):
    """Rows that were checked together, as those of a graph of so many edges."""

    indptr: Array
    indices: Array
    num_edges: int
    directed: bool


class MadeLate:
    """A descriptor for arrays that are made when they are first read, and for those of a writable
    copy, which are checked each time."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, s: Any, owner: Any = None) -> Any:
        if s is None:
            return self
        state, name = vars(s), self._name
        if WRITABLE in state:
            return s._checked(name)
        link, late = state.get("views", {}).get(row_versions.KEY), state.get(LATE)
        if link is not None and name in ROWS:
            state.update(zip(ROWS, link.state.rows.contiguous()[:2], strict=True))
        elif late is not None and name in OF_EDGES:
            state.update(zip(OF_EDGES, late.columns(), strict=True))
            state.pop(LATE, None)
        if name not in state:  # another thread may have made it meanwhile
            raise AttributeError(f"{type(s).__name__} has no {name!r}")
        return state[name]


class _HandedOut:
    """An attribute as callers read it: a read-only view, or a copy, of the array that is kept with
    an underscore. It is kept in the snapshot once it has been read."""

    def __init__(self, name: str, doc: str) -> None:
        self._name, self.__doc__ = name, doc

    def __get__(self, s: Any, owner: Any = None) -> Any:
        if s is None:
            return self
        array = getattr(s, f"_{self._name}")
        if WRITABLE in vars(s):  # `present`, which is made anew each time
            return array
        if array is None:
            given = None
        elif on_device(array):
            # `present` has just been made on the current stream, all else on the taker's.
            taker = None if self._name == "present" else vars(s).get(TAKER)
            given = vars(s).setdefault(self._name, _copied_for(taker, array))
            if taker is not None:
                taker.arrive()  # whichever thread made the copy
        elif self._name in REQUIRED:  # one object for both arrays says that they belong together
            rows = _Rows(s._indptr, s._indices, s.num_edges, s.directed)
            given = hand_out(array, s.views.setdefault("checked rows", rows))
        else:
            given = hand_out(array, array)
        return vars(s).setdefault(self._name, given)


Csr.left = None  # what was pickled by an earlier release says nothing of it
for _column in columns.ALL:
    setattr(Csr, f"_{_column.name}", MadeLate(f"_{_column.name}"))
    setattr(Csr, _column.name, _HandedOut(_column.name, _column.doc))
Csr.present = _HandedOut(  # type: ignore[assignment]
    "present",
    "bool[n], where the snapshot lies: whether each row is a vertex. One pass over `indices` at "
    "the first call, kept from then on.",
)


class _Forgetful(dict[str, Any]):
    """The views of a writable copy: what was made of it is wrong once it is written to."""

    def __setitem__(self, name: str, view: Any) -> None:
        pass

    def setdefault(self, name: str, view: Any = None) -> Any:
        return view


def _rows_checked(
    indptr: Array, indices: Array, num_edges: int, directed: bool
) -> tuple[Array, Array] | None:
    """The arrays kept of rows that were handed out by a snapshot of the same edges."""
    rows: Any = getattr(indptr, "checked", None)
    belong = isinstance(rows, _Rows) and rows is getattr(indices, "checked", None)
    return rows[:2] if belong and rows[2:] == (num_edges, directed) else None


def _own(array: Array | None) -> Array | None:
    """A caller's array as one that nobody else writes to."""
    kept: Array | None = getattr(array, "checked", None)
    if array is None or isinstance(kept, np.ndarray):
        return kept
    return copied(array)


def _copied_for(taker: Taker | None, array: Array) -> Any:
    """A copy where the array lies. taker: for which stream of a device the array was made, and the
    copy is; None: for the current one."""
    if taker is None or not taker.waits:
        return copied(array)
    with device_of(array), taker.stream:
        return copied(array)

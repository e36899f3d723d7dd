"""Ours and the two controls, behind the same few methods. Keys on the host go in, as a batch in the
form that suits the store best; contents come out as sorted keys on the device, and are compared in
full.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

import lpma
from lpma.batch.columns import Kind

from ..keys import Array, ends_of, keys_of
from ..stopwatch import WrongAnswer
from .contiguous_pma import ContiguousPma
from .flat_merge import FlatMerge
from .packed import Packed


class DeviceStore(ABC):
    """A directed set of edges on the device."""

    name: str
    deletes = True

    @abstractmethod
    def load(self, keys: Any, vertices: int, room: int) -> None:
        """Start from these sorted keys; about `room` edges will come."""

    @abstractmethod
    def prepare(
        self, keys: Array, deleting: bool = False, slot: int = 0, pinned: bool = True
    ) -> Any:
        """A batch in host memory, valid until the next of the same length and slot. Not timed."""

    @abstractmethod
    def insert(self, batch: Any) -> None: ...

    @abstractmethod
    def delete(self, batch: Any) -> None: ...

    @abstractmethod
    def keys(self) -> Any:
        """All keys, sorted; CuPy."""

    @property
    def levels(self) -> int:
        """A number that grows by one with every expansion."""
        return 0

    def verify(self, expected: Any) -> None:
        """Raise WrongAnswer unless the store holds exactly these sorted keys."""
        keys = self.keys()
        if len(keys) != len(expected):
            raise WrongAnswer(f"{self.name}: {len(keys):,} edges, expected {len(expected):,}")
        if not bool((keys == expected).all()):
            raise WrongAnswer(f"{self.name}: as many edges as expected, but others")


class Ours(DeviceStore):
    """lpma.Graph with these options; float32 weights and int64 times unless they say otherwise."""

    def __init__(self, name: str, **options: Any) -> None:
        self.name, self.options = name, {"device": "cuda", **options}
        self._pinned: dict[tuple[int, int], Any] = {}
        self._keys_only = options.get("weight", "") is None

    def load(self, keys: Any, vertices: int, room: int) -> None:
        self.vertices = vertices
        self.graph = lpma.Graph(**self.options)
        if len(keys):
            self.graph.insert(*ends_of(keys))

    def prepare(
        self, keys: Array, deleting: bool = False, slot: int = 0, pinned: bool = True
    ) -> Any:
        src, dst = ends_of(keys)
        kind = int(Kind.DELETE if deleting else Kind.INSERT)
        if not pinned:
            whole = not (deleting or self._keys_only)
            weights = np.ones(len(keys), np.float32) if whole else None
            times = None if self._keys_only else np.arange(len(keys))
            return lpma.Batch.from_columns(kind, src, dst, weights, times)
        if (len(keys), slot) not in self._pinned:
            self._pinned[len(keys), slot] = lpma.pinned_batch(len(keys))
        batch = self._pinned[len(keys), slot]
        batch.kind[:], batch.src[:], batch.dst[:] = kind, src, dst
        batch.time[:] = np.arange(len(keys))
        if self._keys_only:
            return dataclasses.replace(batch, weight=None, time=None)
        return dataclasses.replace(batch, weight=None) if deleting else batch

    def insert(self, batch: Any) -> None:
        self.graph.apply(batch)

    def delete(self, batch: Any) -> None:
        self.graph.apply(batch)

    def keys(self) -> Any:
        import cupy

        snapshot = self.graph.snapshot()
        place = cupy.arange(len(snapshot.indices))
        rows = cupy.searchsorted(snapshot.indptr[1:], place, side="right")
        return keys_of(rows, snapshot.indices)

    def csr(self) -> Any:
        snapshot = self.graph.snapshot()
        return snapshot, snapshot._weights  # weights and times are copied when they are asked for

    @property
    def levels(self) -> int:
        return self.graph.levels

    def segments_moved(self) -> int:
        return int(self.graph.stats().segments_by_layer.sum())


class _Control(DeviceStore):
    """What both controls do with batches."""

    columns = True

    def __init__(self) -> None:
        self._memory: dict[tuple[int, int, bool], Array] = {}

    def prepare(
        self, keys: Array, deleting: bool = False, slot: int = 0, pinned: bool = True
    ) -> Packed:
        at = (len(keys), slot, pinned)
        if at not in self._memory:
            self._memory[at] = Packed.empty(len(keys), self.columns, pinned)
        weights = np.ones(len(keys), np.float32) if self.columns else None
        times = np.arange(len(keys)) if self.columns else None
        return Packed.fill(self._memory[at], keys, weights, times)


class Flat(_Control):
    """The flat sorted merge, with room for everything that will come."""

    def __init__(self, columns: bool = True) -> None:
        super().__init__()
        self.columns = columns
        self.name = "flat" if columns else "flat-keys"

    def load(self, keys: Any, vertices: int, room: int) -> None:
        self.vertices = vertices
        self.store = FlatMerge(self.columns, vertices)
        self.store.load(keys, room)

    def prepare(
        self, keys: Array, deleting: bool = False, slot: int = 0, pinned: bool = True
    ) -> Packed:
        len(self.store)  # so that its bound on the number of edges is exact
        return super().prepare(keys, deleting, slot, pinned)

    def insert(self, batch: Packed) -> None:
        self.store.insert(batch)

    def delete(self, batch: Packed) -> None:
        self.store.delete(batch)

    def keys(self) -> Any:
        return self.store.contents()[0]

    def csr(self) -> Any:
        """(indptr, indices): one search per vertex, and the low halves of the keys. Weights and
        times are arrays already."""
        import cupy

        keys = self.keys()
        fences = cupy.arange(self.vertices + 1, dtype=cupy.uint64) << np.uint64(32)
        return cupy.searchsorted(keys, fences), keys.astype(cupy.uint32)


class Contiguous(_Control):
    """The packed-memory array in one piece."""

    name, deletes = "contiguous", False

    def load(self, keys: Any, vertices: int, room: int) -> None:
        self.store = ContiguousPma(vertices)
        if len(keys):
            self.store.load(keys)

    def insert(self, batch: Packed) -> None:
        self.store.insert(batch)

    def delete(self, batch: Packed) -> None:
        raise NotImplementedError("this control takes inserts only")

    def keys(self) -> Any:
        return self.store.contents()[0]

    @property
    def levels(self) -> int:
        return self.store.m


def ours(name: str) -> Ours:
    """Ours by a short name: lpma[-never | -keys | -bottom-up | -top-down | -hybrid]. The three
    strategies run with global_merge="never", as in the paper."""
    mode = name.removeprefix("lpma").removeprefix("-")
    options: dict[str, dict[str, Any]] = {
        "": {},
        "never": {"global_merge": "never"},
        "keys": {"weight_dtype": None, "times": False},
    }
    return Ours(name, **options.get(mode, {"strategy": mode, "global_merge": "never"}))


def make(name: str) -> DeviceStore:
    controls = {
        "flat": Flat,
        "flat-keys": lambda: Flat(columns=False),
        "contiguous": Contiguous,
    }
    return controls[name]() if name in controls else ours(name)

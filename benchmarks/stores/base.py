"""What a store must offer to be compared, and ours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..keys import Array, csr_keys
from ..model import Fingerprint
from ..stopwatch import WrongAnswer


class Store(ABC):
    """A directed set of edges over the vertices 0 ... n - 1."""

    name: str

    @abstractmethod
    def load(self, src: Array, dst: Array, n: int) -> None:
        """Start from these edges, each once, in the fastest way there is."""

    def prepare(self, src: Array, dst: Array) -> Any:
        """A batch in the form that suits the methods below best. Not timed."""
        return src, dst

    @abstractmethod
    def insert(self, batch: Any) -> None: ...

    @abstractmethod
    def delete(self, batch: Any) -> None: ...

    @abstractmethod
    def has_edges(self, batch: Any) -> Array:
        """bool[q]"""

    @abstractmethod
    def successors(self, u: Array) -> tuple[Array, Array]:
        """(indptr, ids) of the vertices u; rows need not be sorted."""

    @abstractmethod
    def to_csr(self) -> tuple[Array, Array]:
        """(indptr, indices), rows sorted, in arrays of their own."""

    def keys(self) -> Array:
        """All keys, sorted."""
        return csr_keys(*self.to_csr())

    def verify(self, expected: Fingerprint) -> None:
        """Raise WrongAnswer unless this store holds exactly the expected edges, in order."""
        keys = self.keys()
        if not bool((keys[1:] > keys[:-1]).all()):
            raise WrongAnswer(f"{self.name}: the exported keys are not sorted")
        found = Fingerprint.of(keys)
        if found != expected:
            raise WrongAnswer(f"{self.name}: holds {found}, expected {expected}")


class Lpma(Store):
    """Ours, at its default columns: float32 weights and int64 times."""

    def __init__(self, name: str = "lpma", **options: Any) -> None:
        self.name, self.options = name, {"device": "cpu", **options}

    def load(self, src: Array, dst: Array, n: int) -> None:
        import lpma

        self.graph = lpma.Graph(**self.options)
        self.graph.insert(src, dst)

    def prepare(self, src: Array, dst: Array) -> tuple[Array, Array]:
        return src.astype(np.uint32), dst.astype(np.uint32)

    def insert(self, batch: tuple[Array, Array]) -> None:
        self.graph.insert(*batch)

    def delete(self, batch: tuple[Array, Array]) -> None:
        self.graph.delete(*batch)

    def has_edges(self, batch: tuple[Array, Array]) -> Array:
        found: Array = self.graph.edges(*batch).found
        return found

    def successors(self, u: Array) -> tuple[Array, Array]:
        rows = self.graph.successors(u)
        return rows.indptr, rows.ids

    def to_csr(self) -> tuple[Array, Array]:
        snapshot = self.graph.snapshot()
        return snapshot.indptr, snapshot.indices


def warm_up() -> None:
    """Run every path of our store once, so that nothing is compiled while the clock runs."""
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 1 << 12, (2, 40_000), dtype=np.uint32)
    for strategy in ("bottom-up", "top-down", "hybrid"):
        for global_merge in ("never", "auto"):
            store = Lpma(strategy=strategy, global_merge=global_merge)
            store.load(src[:100], dst[:100], 1 << 12)
            for start in range(0, len(src), 5_000):
                store.insert((src[start : start + 5_000], dst[start : start + 5_000]))
            store.has_edges((src, dst))
            store.successors(src)
            store.to_csr()
            store.delete((src[:39_000], dst[:39_000]))

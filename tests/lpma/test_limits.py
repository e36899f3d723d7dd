"""How large a store may be: refused by the host before anything is allocated or written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import lpma
from lpma.backend.cuda import MAX_SLOTS, most_levels
from lpma.backend.defaults import Defaults
from lpma.backend.numba.backend import NumbaBackend
from lpma.backend.numba.rebalance import MAX_M
from lpma.backend.values import Costs, Tally
from lpma.pma.density import bounds
from lpma.pma.layout import Size
from lpma.store.lpma import LPMA

SIZES = [1 << i for i in range(1, 11)]
U32 = 1 << 32


class Unbuilt(Defaults):
    """A backend of stores that are numbers alone. Whatever is made of them, is noted."""

    costs = Costs(leaf=0.0, window=0.0, rebuild=1.0)
    way_out = "use another"
    written = False

    def __init__(self, most: int, m: int, num_slots: int) -> None:
        self.most, self.made = most, list[int]()
        self.segments = SimpleNamespace(
            m=m, size=Size(m), num_slots=num_slots, nbytes=0
        )  # fmt: skip

    def empty(self, *how: Any) -> Any:
        return self.segments

    def most_levels(self, segment_size: int) -> int:
        return self.most

    def parted_from(self, segment_size: int) -> int:
        return self.most + 1

    def expand(self, segments: Any, size: Size) -> Any:
        m = segments.m + 1
        assert size == Size(m)
        self.made.append(m)
        return SimpleNamespace(**{**vars(segments), "m": m, "size": Size(m)})

    def build(self, segment_size: int, dtype: Any, times: bool, size: Size, slots: Any) -> Any:
        self.made.append(size.m)

    def rebuild(self, segments: Any, located: Any, size: Size) -> Any:
        self.made.append(size.m)
        return SimpleNamespace(m=size.m, size=size)

    def place_on(self, segments: Any, located: Any) -> None:
        assert segments.m == self.made[-1]

    def plan(self, *how: Any) -> Any:
        return SimpleNamespace(held_above_leaves=0)

    def rollback(self, located: Any) -> None:
        pass

    def reserve(self, *how: Any) -> None:
        pass


def store_of(backend: Unbuilt, segment_size: int, global_merge: str) -> LPMA:
    return LPMA(backend, segment_size, None, False, "bottom-up", global_merge)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", SIZES)
def test_what_cuda_numbers_in_32_bits(size: int) -> None:
    """Every number that kernels make of a store fits, and with a level more one would not."""

    def largest(m: int) -> int:
        return max(
            (1 << m + 1),  # window numbers, and one past the last
            size << m,  # slots of the root's window
            int(bounds(m, size)[0][m]),  # filled ones
        )

    assert largest(most_levels(size)) < U32 <= largest(most_levels(size) + 1)
    assert size << most_levels(size) == MAX_SLOTS


@pytest.mark.parametrize("global_merge", ["auto", "never"])
@pytest.mark.parametrize("size, most", [(2, 30), (32, 26), (1024, 21), (32, MAX_M)])
def test_a_store_grows_up_to_its_limit(size: int, most: int, global_merge: str) -> None:
    full = int(bounds(most, size)[0][most])

    def prepared(held: int, delta: int) -> Unbuilt:
        backend = Unbuilt(most, most - 1, held)
        located: Any = SimpleNamespace(
            tally=Tally(touched=1, delta=delta, markers=0, loops=0, largest=0, deletions=0)
        )
        store = store_of(backend, size, global_merge)
        try:
            store.prepared(located, delta, "bottom-up", 0.5, 0.0)
        finally:
            assert not store.written
            assert store.segments.m == most - 1
        return backend

    held = int(bounds(most - 1, size)[0][most - 1])
    assert prepared(held, full - held).made == [most]
    with pytest.raises(lpma.StoreTooLarge, match=f"have up to|has up to 2\\^{most}") as refused:
        prepared(held, full - held + 1)
    assert "use another" in str(refused.value)


def test_loading_has_the_same_limit() -> None:
    most = most_levels(32)
    full = int(bounds(most, 32)[0][most])
    backend = Unbuilt(most, most, full)
    store = store_of(backend, 32, "auto")
    slots: Any = SimpleNamespace(total=full)
    store.build(slots)
    assert backend.made == [most]
    slots.total += 1
    with pytest.raises(lpma.StoreTooLarge):
        store.build(slots)
    assert backend.made == [most]


def test_a_graph_at_its_limit_goes_on(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch that does not fit is unapplied; a pipeline keeps it, as with any OutOfMemory."""
    g = lpma.Graph(device=device, segment_size=2, predecessors=True)
    for store, _ in g._stores.all:
        monkeypatch.setattr(store.backend, "most_levels", lambda size: 3)
    g.insert(range(14), range(14), time=1)
    for batch in (lambda: g.insert(range(20, 30), 1), lambda: g.add_vertices(range(50))):
        with pytest.raises(lpma.StoreTooLarge, match="nothing is changed"):
            batch()
    mixed = lpma.Batch()
    mixed.degree(3)
    for v in range(20, 30):
        mixed.insert(v, 1)
    with pytest.raises(lpma.StoreTooLarge):
        g.apply(mixed)
    assert (g.version, g.num_edges) == (1, 14)
    g.check()
    g.delete(3, 3)
    g.insert(3, 4)
    assert g.num_edges == 14
    g.check()
    assert issubclass(lpma.StoreTooLarge, lpma.OutOfMemory)


def test_the_cpus_limit() -> None:
    assert NumbaBackend().most_levels(32) == MAX_M

"""How many levels a store has, and when it is rebuilt: at the bounds, not beside them."""

from __future__ import annotations

import math

import pytest

from lpma.pma.density import bounds
from lpma.pma.layout import Size
from lpma.store.sizing import Sizing
from tests.support.seam import SIZE, Make, filled, on_numpy, slow


@pytest.mark.parametrize("m", [1, 2, 5])
def test_a_root_holds_what_its_bounds_say(m: int) -> None:
    """Invariant 4: both bounds are within them."""
    sizing = Sizing(on_numpy(), SIZE, "auto")
    most, least = (int(bound[m]) for bound in bounds(m, SIZE))
    none, size = Size(0), Size(m)
    assert (sizing.size_for(most, none), sizing.size_for(most + 1, none)) == (size, Size(m + 1))
    assert (sizing.is_too_empty(least, size), sizing.is_too_empty(least - 1, size)) == (False, True)
    assert sizing.size_rebuilt(least, size) == size > sizing.size_rebuilt(least - 1, size)
    assert not sizing.is_too_empty(0, none)


@pytest.mark.parametrize("make", [on_numpy, slow])
def test_a_batch_much_larger_than_its_store_is_a_load(make: Make) -> None:
    """It is rebuilt whatever its windows cost, and one that is as large where that is cheaper: on
    the CPU it never is. NumPy rebuilds with every batch, whatever is asked."""
    store = filled(make, merges="auto")
    held, costs = store.num_slots, store.backend.costs
    most = costs.load * held
    auto = Sizing(store.backend, SIZE, "auto")
    assert auto.most_cost(store.segments, most + 1) < 0
    assert auto.most_cost(store.segments, most) == costs.rebuild * (held + most)
    assert (costs.rebuild, auto.least_held[2]) == ((math.inf, 2) if make is on_numpy else (2, 12))
    never = Sizing(store.backend, SIZE, "never").most_cost(store.segments, most + 1)
    assert never < 0 if make is on_numpy else never == math.inf

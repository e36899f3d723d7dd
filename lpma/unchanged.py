"""Operations that are applied and leave their edge as it was, by reason; and edges that expire.

By Definition 2 only a positive weight makes an edge, and numbers have limits; so even a good stream
holds operations that do nothing. They are not errors, but they are counted: on the CPU by
backend/numba/fold.py, on a device by backend/cuda/runs.cuh, by the same rule. Appends that only
change an edge's time are not counted, nor are operations on vertices.

An edge that expires is no operation of the caller's, and nobody named it: so it is counted, too, by
the same code and beside the reasons.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

CHANGED = -1
# In the order of the fields below, and then the count of edges that expired.
NOT_POSITIVE, UNDERFLOW, DELETE_ABSENT, ROUNDED_OFF, EXPIRED = range(5)
REASONS = 5


@dataclass
class Unchanged:
    """How many operations changed nothing, by reason. `Graph.unchanged` returns it.

    not_positive   appends of a weight of 0 or less to an absent edge; if edges have no
                   weights, of 0 to any
    underflow      appends of a weight so small that the store's dtype rounds it to 0
    delete_absent  deletions of an absent edge
    rounded_off    appends whose sum is rounded back to what it was: past 2^24 in float32 and 2^53
                   in float64, adding 1 does that

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert(1, 2, weight=-1.0)
    >>> g.delete(3, 4)
    >>> g.unchanged
    Unchanged(not_positive=1, underflow=0, delete_absent=1, rounded_off=0)
    """

    not_positive: int = 0
    underflow: int = 0
    delete_absent: int = 0
    rounded_off: int = 0

    @property
    def total(self) -> int:
        """The sum over all reasons."""
        return sum(self.as_dict().values())

    def as_dict(self) -> dict[str, int]:
        """The counts by the names of their reasons."""
        return asdict(self)

    def since(self, before: Unchanged) -> Unchanged:
        """The counts since `before`, an earlier reading of the same graph."""
        then = before.as_dict()
        return Unchanged(**{why: count - then[why] for why, count in self.as_dict().items()})


def unchanged_of(counts: Any, directed: bool) -> Unchanged:
    """From counts [2 * REASONS]: of edges to a vertex that is no smaller, then of falling ones. In
    an undirected graph those are the same edges in the other direction."""
    return Unchanged(*_once(counts, directed)[:EXPIRED])


def expired_of(counts: Any, directed: bool) -> int:
    """The edges that expired, from the same counts."""
    return _once(counts, directed)[EXPIRED]


def _once(counts: Any, directed: bool) -> list[int]:
    rising, falling = counts[:REASONS].tolist(), counts[REASONS:].tolist()
    return [up + directed * down for up, down in zip(rising, falling, strict=True)]

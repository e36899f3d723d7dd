"""Small batches that overlap: each is launched before the host knows the outcome of the last.

Idea: a device needs the host to launch a batch, and not to finish it. So `Graph.apply` returns once
the batch is launched and its rows are known to be good. Its outcome (counts, changes) is read when
the next batch has been launched, or when anybody asks: until then the batch is *pending*.

Nobody sees the difference: the graph's lock finishes the pending batch before every other call, and
batches overlap only where the store keeps its levels whatever the batches under way come to, and no
decision depends on how long one takes. What remains is that the device declines a batch because
merging the whole store would be cheaper, or its windows are larger than expected. It is then
applied in steps; if memory runs out for that, the graph is broken, and the error names the batch's
version.

Requires: a graph with one store; batches of edge updates whose columns do not lie on the device, as
a caller may write to those once `apply` has returned.
"""

from __future__ import annotations

from typing import Any

from ..record import Record
from .history import History

SHARE = 32  # batches overlap where the store holds that many slots for each key operation


class PendingBatch(Record):
    """A batch that is launched. `version` and `history` are set once it is counted."""

    launched: Any
    operations: int
    rows: int  # key operations at most
    strategy: str
    density: float  # of the store before the batch
    seconds: float
    version: int = 0
    history: History | None = None

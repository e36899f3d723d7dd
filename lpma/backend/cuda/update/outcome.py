"""What a batch did, as the device reports it."""

from __future__ import annotations

import numpy as np

from ....batch.columns import MAX_HOPS, MAX_VERTEX, MAX_WEIGHT, Kind
from ....errors import BatchError
from ....pma.counters import Stats
from ...values import Changed, Committed
from ..store.work import Report
from .located import DevicePlan, Located

COMPLAINTS = (
    (Report.BAD_KIND, f"kind: values go from 0 to {int(Kind.VERTEX)}"),
    (Report.BAD_VERTEX, f"vertex ids go from 0 to {MAX_VERTEX}"),
    (Report.BAD_WEIGHT, f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken"),
    (Report.BAD_HOPS, f"hops: the number of steps goes from 1 to {MAX_HOPS}"),
)


def refuse_bad_rows(report: list[int]) -> None:
    """Raises BatchError if the device found any. REQUIRES: it has written nothing of the batch."""
    for word, complaint in COMPLAINTS:
        if report[word]:
            raise BatchError(f"{complaint} ({report[word]} rows)")


def committed(
    located: Located, plan: DevicePlan | None, stats: Stats, changes: Changed
) -> Committed:
    """What a located batch did, whose plan, if there was one, is carried out."""
    redundant, num_rounds, held = 0, 0, 0
    if plan is not None:
        stats.note_windows(np.array(plan.windows_by_layer), np.array(plan.held_by_layer))
        redundant, num_rounds = plan.redundant, plan.num_rounds
        held = sum(plan.held_by_layer)
    return Committed(
        tally=located.tally, unchanged=located.unchanged, changes=changes,
        redundant=redundant, num_rounds=num_rounds, held=held,
    )  # fmt: skip

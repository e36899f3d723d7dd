"""What a batch did, as the device reports it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....batch.columns import MAX_HOPS, MAX_VERTEX, MAX_WEIGHT, Kind
from ....errors import BatchError
from ....pma.counters import Stats
from ....pma.strategy import TOP_DOWN
from ...values import Changed, Committed, Unread
from ..store.work import Report
from .changes import Room
from .launch_block import BY_LAYER, HEAD
from .located import DevicePlan, Located, tally_of

INSERTED, DELETED = int(Report.INSERTED), int(Report.DELETED)
UNCHANGED, WINDOWS, REDUNDANT = int(Report.UNCHANGED), int(Report.WINDOWS), int(Report.REDUNDANT)
HELD_ABOVE, HELD_IN_LEAVES = int(Report.HELD_ABOVE), HEAD + int(Report.HELD_BY_LAYER)

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


def applied(answer: Any, strategy: str, room: Room) -> Committed:
    """What a batch did that the device applied by itself: as `committed`, without a plan."""
    report = answer[HEAD:BY_LAYER].tolist()
    tally = tally_of(report)
    number = report[INSERTED] + report[DELETED]
    changes = Unread(number, room.arrays) if room.rows else None
    if not tally.touched:
        return Committed(tally, report[UNCHANGED:], changes)
    rounds = 1
    if strategy != TOP_DOWN:
        left, layer = report[WINDOWS] + answer[BY_LAYER], BY_LAYER
        while left:
            left -= answer[layer]
            layer += 1
        rounds = max(layer - BY_LAYER, 1)
    held = report[HELD_ABOVE] + answer[HELD_IN_LEAVES]
    return Committed(tally, report[UNCHANGED:], changes, report[REDUNDANT], rounds, held)


def committed(
    located: Located, plan: DevicePlan | None, stats: Stats, changes: Changed
) -> Committed:
    """What a located batch did, whose plan, if there was one, is carried out."""
    redundant, num_rounds, held = 0, 0, 0
    if plan is not None:
        stats.note_windows(np.array(plan.windows_by_layer), np.array(plan.held_by_layer))
        redundant, num_rounds = plan.redundant, plan.num_rounds
        held = sum(plan.held_by_layer)
    return Committed(located.tally, located.unchanged, changes, redundant, num_rounds, held)

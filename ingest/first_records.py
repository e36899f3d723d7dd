"""The first records of a stream that begins: if all of them are bad, the stream is not read as it
was written, with wrong fields, say, or without names. So it stops, and leaves nothing that would be
in the way of who says it right: no checkpoint, and no dead letters.

    on trial --a good record--> passed: dead letters leave, and checkpoints are taken
             --`limit` bad ones, or the end after fewer--> AllRecordsBad

On trial, dead letters wait (`Outputs.held`), and so do checkpoints, which come after them. A record
is good if it was decoded: also a query, a repeat, and one whose rows are late.
"""

from __future__ import annotations

from .errors import AllRecordsBad
from .queries.sinks import Outputs


class FirstRecords:
    """Judges the first `limit` records of a stream, whose dead letters go to `outputs`. limit 0:
    none is judged."""

    def __init__(self, limit: int, outputs: Outputs) -> None:
        self.limit = limit
        self._outputs = outputs
        self.failed = False  # whether the stream has stopped for them
        self._bad = 0
        outputs.held = limit > 0

    @property
    def on_trial(self) -> bool:
        """Whether no record was good so far, and a good one may still come."""
        return self._outputs.held

    def good(self) -> None:
        """Note a record that was decoded."""
        self._outputs.held = False

    def bad(self) -> None:
        """Note a record that became a dead letter. Raises AllRecordsBad if it was the last that
        was waited for."""
        if self.on_trial:
            self._bad += 1
            if self._bad >= self.limit:
                self.end()

    def end(self) -> None:
        """No other records come. Raises AllRecordsBad if some came, and all were bad."""
        if self.on_trial and self._bad:
            count = "record is" if self._bad == 1 else f"{self._bad:,} records are"
            reason = self._outputs.kept[0].reason
            self.failed = True
            raise AllRecordsBad(
                f"the first {count} bad ({reason}): read them as they were written, or leave "
                "stop_if_first_bad out to go on after them. Nothing was kept"
            )

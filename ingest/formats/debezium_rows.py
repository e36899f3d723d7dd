"""Many change events at once."""

from __future__ import annotations

from collections.abc import Iterator

from ..fields import Debezium
from ..types import Values
from .debezium import ChangeReader
from .row_reader import Stretch


class ChangeRows:
    def __init__(self, table: Debezium, names: bool, topic: str, is_alone: bool) -> None:
        self.reader = ChangeReader(table, names, topic, is_alone)

    def stretches(self, values: Values) -> Iterator[Stretch]:
        yield Stretch(0, len(values))

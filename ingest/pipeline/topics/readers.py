"""The readers of the topics of a stream, chosen by how its records are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ...fields import Debezium, Fields, Records, records_of
from ...formats.debezium.rows import ChangeRows
from ...registry.envelope import Envelope
from ...registry.schemas import Schemas
from ...state.table_rows import TableRows
from ...types import Partition, Polled, Record
from .base import DecodedTopic, TopicReader
from .rows import RowTopic
from .tables import SummedTableTopic, TableTopic


class TopicReaders:
    """records, names: as `RecordSettings` has them. schemas: of records in Confluent's envelope;
    None: these are not read. rows: of tables; None: none are remembered. is_alone: whether all
    updates come from one topic. decode: reads every record, as `Source.decoder`; None: `records`
    says how. directed: whether (u, v) and (v, u) are two edges. partitions: that are read.

    skipped: records of Debezium that are about no row."""

    def __init__(
        self,
        records: Records,
        names: bool,
        schemas: Schemas | None = None,
        rows: TableRows | None = None,
        is_alone: bool = False,
        decode: Callable[[bytes], Record] | None = None,
        directed: bool = True,
        partitions: Iterable[Partition] = (),
    ) -> None:
        self._partitions = Counter(partition.topic for partition in partitions)
        self.names, self.schemas, self._directed = names, schemas, directed
        self.skipped: Counter[str] = Counter()
        self._records, self._rows, self._is_alone, self._decode = records, rows, is_alone, decode
        self._made: dict[str, TopicReader] = {}

    def of(self, topic: str) -> TopicReader:
        """The reader of that topic, which is made when it is first asked for."""
        found = self._made.get(topic)
        if found is None:
            found = self._made[topic] = self._chosen(topic)
        return found

    def _chosen(self, topic: str) -> TopicReader:
        if self._decode is not None:
            return DecodedTopic(self._decode)
        records = records_of(self._records, topic)
        if not isinstance(records, Debezium):
            fields = records if isinstance(records, Fields) else None
            return RowTopic(fields, self.names, Envelope(self.schemas, fields))
        changes = ChangeRows(
            records, self.names, topic, self._is_alone, self._directed, self._partitions[topic] > 1
        )
        envelope = Envelope(self.schemas, records.fields, of_table=True)
        if not changes.remembers:
            return TableTopic(changes, envelope, self.skipped)
        assert self._rows is not None
        return SummedTableTopic(topic, changes, envelope, self.skipped, self._rows)

    def schema_ids(self, polled: Iterable[Polled]) -> set[int]:
        """The ids of the schemas by which these records are read."""
        found: set[int] = set()
        for one in polled:
            if (envelope := self.of(one.partition.topic).envelope) is not None:
                found |= envelope.ids_in(one)
        return found

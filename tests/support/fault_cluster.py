"""What a Kafka cluster of one node says, made of kafka-python's protocol classes from topics in
memory: an answer to each request that consumers, producers and admin clients of 3.0 send.

One lock around the topics. Knows no groups, transactions or compression.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from kafka.protocol.admin import CreateTopicsRequest, CreateTopicsResponse
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka.record.memory_records import MemoryRecords

from tests.support.fault_log import Log, Topic, encoded

OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE = 1, 2, 3, 5
NOT_LEADER, REPLICA_NOT_AVAILABLE, MESSAGE_TOO_LARGE, STORAGE_ERROR = 6, 9, 10, 56
SASL_AUTHENTICATION_FAILED, UNKNOWN_TOPIC_ID = 58, 100


class Cluster:
    """Topics, and the answers about them. `address` is where the one node says it listens."""

    def __init__(self, **partitions: int) -> None:
        """partitions: topic → how many."""
        self.cluster_id = "fault-broker"
        self.address = ("127.0.0.1", 0)
        self.topics: dict[str, Topic] = {}
        self.asked: Counter[str] = Counter()  # requests by api
        self.max_message_bytes = 1 << 20
        self.password: str | None = None  # of SASL PLAIN, where the client asks for that
        self._changed = threading.Condition()
        for name, count in partitions.items():
            self.create_topic(name, count)

    # What a test does ------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, or make it again under another id, empty."""
        with self._changed:
            self.topics[name] = Topic(name, partitions)
            self._changed.notify_all()

    def produce(self, topic: str, values: Iterable[bytes | None], partition: int = 0) -> int:
        """Append values as one batch; the offset of the first."""
        return self.append(topic, encoded(values), partition)

    def append(self, topic: str, data: bytes, partition: int = 0) -> int:
        """Append encoded batches, good or not; the first offset."""
        with self._changed:
            start = self.topics[topic].logs[partition].append(data)
            self._changed.notify_all()
        return start

    def trim(self, topic: str, before: int, partition: int = 0) -> None:
        with self._changed:
            self.topics[topic].logs[partition].trim(before)

    def roll_back(self, topic: str, to: int, partition: int = 0) -> None:
        """Lose what was written from offset `to` on, which must begin a batch."""
        with self._changed:
            self.topics[topic].logs[partition].roll_back(to)

    def values(self, topic: str, partition: int = 0) -> list[bytes]:
        """What a partition holds."""
        with self._changed:
            batches = list(self.topics[topic].logs[partition].batches)
        found = MemoryRecords(b"".join(batch.data for batch in batches))
        return [record.value for batch in found for record in batch]

    # What a client asks ----------------------------------------------------------------------

    def answer(self, data: bytes) -> tuple[str, Any]:
        """(api, response) to an encoded request, ready to be encoded."""
        key, version = struct.unpack_from(">hh", data)
        request_type, response_to = _HANDLERS[key]
        request = request_type.decode(data, version=version, header=True)
        api: str = request_type.__name__.removesuffix("Request")
        with self._changed:
            self.asked[api] += 1
            response = response_to(self, request)
        response.API_VERSION = version
        response.with_header(correlation_id=request.header.correlation_id)
        return api, response

    def _api_versions(self, request: Any) -> Any:
        offered = ApiVersionsResponse.ApiVersion
        keys = [
            offered(api_key=key, min_version=kind.valid_versions[0],
                    max_version=min(kind.valid_versions[1], _NEWEST.get(kind, 99)))
            for key, (kind, _) in _HANDLERS.items()
        ]  # fmt: skip
        return ApiVersionsResponse(api_keys=keys)

    def _metadata(self, request: Any) -> Any:
        if request.topics is None:
            topics = [self._described(name) for name in self.topics]
        else:
            topics = [self._described(asked.name, asked.topic_id) for asked in request.topics]
        host, port = self.address
        node = MetadataResponse.MetadataResponseBroker(node_id=0, host=host, port=port)
        return MetadataResponse(
            brokers=[node], cluster_id=self.cluster_id, controller_id=0, topics=topics
        )

    def _described(self, name: str | None, id: Any = None) -> Any:
        kind = MetadataResponse.MetadataResponseTopic
        topic = self._topic(name, id)
        if topic is None:
            return kind(error_code=UNKNOWN_TOPIC, name=name)
        partitions = [
            kind.MetadataResponsePartition(
                partition_index=number, leader_id=0, leader_epoch=0, replica_nodes=[0],
                isr_nodes=[0],
            )
            for number in range(len(topic.logs))
        ]  # fmt: skip
        return kind(name=topic.name, topic_id=topic.id, partitions=partitions)

    def _topic(self, name: str | None, id: Any) -> Topic | None:
        if name:
            return self.topics.get(name)
        return next((topic for topic in self.topics.values() if topic.id == id), None)

    def _log(self, topic: Topic | None, number: int) -> Log | None:
        return topic.logs[number] if topic is not None and number < len(topic.logs) else None

    def _list_offsets(self, request: Any) -> Any:
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = []
        for asked in request.topics:
            partitions = []
            for part in asked.partitions:
                answer = kind.ListOffsetsPartitionResponse(partition_index=part.partition_index)
                log = self._log(self.topics.get(asked.name), part.partition_index)
                if log is None:
                    answer.error_code = UNKNOWN_TOPIC
                else:
                    answer.offset = log.first if part.timestamp == -2 else log.end
                    answer.leader_epoch = 0
                partitions.append(answer)
            topics.append(kind(name=asked.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    def _epoch_ends(self, request: Any) -> Any:
        kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        topics = []
        for asked in request.topics:
            partitions = []
            for part in asked.partitions:
                log = self._log(self.topics.get(asked.topic), part.partition)
                partitions.append(kind.EpochEndOffset(
                    error_code=UNKNOWN_TOPIC if log is None else 0, partition=part.partition,
                    leader_epoch=0, end_offset=-1 if log is None else log.end,
                ))  # fmt: skip
            topics.append(kind(topic=asked.topic, partitions=partitions))
        return OffsetForLeaderEpochResponse(topics=topics)

    def _fetch(self, request: Any) -> Any:
        """Waits for data as a broker does, as long as the client asks for."""
        deadline = time.monotonic() + request.max_wait_ms / 1000
        while True:
            response, size = self._fetched(request)
            left = deadline - time.monotonic()
            if size or left <= 0:
                return response
            self._changed.wait(left)

    def _fetched(self, request: Any) -> tuple[Any, int]:
        """The answer, and a size that is 0 where the client would rather wait for more."""
        kind = FetchResponse.FetchableTopicResponse
        topics = []
        size = 0
        for asked in request.topics:
            topic = self._topic(asked.topic, asked.topic_id)
            partitions = []
            for part in asked.partitions:
                answer = kind.PartitionData(partition_index=part.partition, records=b"")
                log = self._log(topic, part.partition)
                if log is None:
                    answer.error_code = UNKNOWN_TOPIC if asked.topic else UNKNOWN_TOPIC_ID
                else:
                    answer.high_watermark = answer.last_stable_offset = log.end
                    answer.log_start_offset = log.first
                    if not log.first <= part.fetch_offset <= log.end:
                        answer.error_code = OFFSET_OUT_OF_RANGE
                    elif size < request.max_bytes:
                        room = min(part.partition_max_bytes, request.max_bytes - size)
                        answer.records = log.read(part.fetch_offset, room)
                size += len(answer.records) + (answer.error_code != 0)
                partitions.append(answer)
            topics.append(kind(topic=asked.topic, topic_id=asked.topic_id, partitions=partitions))
        return FetchResponse(responses=topics), size

    def _producer_id(self, request: Any) -> Any:
        return InitProducerIdResponse(producer_id=self.asked["InitProducerId"], producer_epoch=0)

    def _produce(self, request: Any) -> Any:
        kind = ProduceResponse.TopicProduceResponse
        topics = []
        for asked in request.topic_data:
            topic = self._topic(asked.name, asked.topic_id)
            partitions = []
            for part in asked.partition_data:
                answer = kind.PartitionProduceResponse(index=part.index, log_append_time_ms=-1)
                log, data = self._log(topic, part.index), bytes(part.records)
                if log is None:
                    answer.error_code = UNKNOWN_TOPIC
                elif len(data) > self.max_message_bytes:
                    answer.error_code = MESSAGE_TOO_LARGE
                else:
                    answer.base_offset = log.append(data)
                partitions.append(answer)
            topics.append(
                kind(name=asked.name, topic_id=asked.topic_id, partition_responses=partitions)
            )
        self._changed.notify_all()
        return ProduceResponse(responses=topics)

    def _sasl_handshake(self, request: Any) -> Any:
        return SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])

    def _sasl_authenticate(self, request: Any) -> Any:
        right = bytes(request.auth_bytes).split(b"\0")[-1].decode() == self.password
        return SaslAuthenticateResponse(
            error_code=0 if right else SASL_AUTHENTICATION_FAILED,
            error_message=None if right else "wrong password",
            auth_bytes=b"",
        )

    def _create_topics(self, request: Any) -> Any:
        results = []
        for asked in request.topics:
            known = asked.name in self.topics
            if not known:
                self.topics[asked.name] = Topic(asked.name, max(1, asked.num_partitions))
            results.append(CreateTopicsResponse.CreatableTopicResult(
                name=asked.name, topic_id=self.topics[asked.name].id,
                error_code=36 if known else 0,
            ))  # fmt: skip
        return CreateTopicsResponse(topics=results)


_Handler = Callable[[Cluster, Any], Any]
_HANDLERS: dict[int, tuple[Any, _Handler]] = {
    kind.API_KEY: (kind, handler)
    for kind, handler in (
        (ProduceRequest, Cluster._produce),
        (FetchRequest, Cluster._fetch),
        (ListOffsetsRequest, Cluster._list_offsets),
        (MetadataRequest, Cluster._metadata),
        (ApiVersionsRequest, Cluster._api_versions),
        (SaslHandshakeRequest, Cluster._sasl_handshake),
        (SaslAuthenticateRequest, Cluster._sasl_authenticate),
        (CreateTopicsRequest, Cluster._create_topics),
        (InitProducerIdRequest, Cluster._producer_id),
        (OffsetForLeaderEpochRequest, Cluster._epoch_ends),
    )
}
_NEWEST = {FetchRequest: 17, ListOffsetsRequest: 10}  # as Kafka 4.0 has them

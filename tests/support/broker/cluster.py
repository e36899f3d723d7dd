"""A running Kafka, with what the tests do to it beside reading and writing."""

from __future__ import annotations

import uuid
from typing import Any, Self

from kafka import KafkaAdminClient, TopicPartition


class Cluster:
    """The brokers at `bootstrap`."""

    def __init__(self, bootstrap: str, sasl_bootstrap: str | None = None) -> None:
        self.bootstrap = bootstrap
        self.sasl_bootstrap = sasl_bootstrap  # None: not known to have one
        self.admin: Any = KafkaAdminClient(bootstrap_servers=bootstrap)

    def topic(self, partitions: int = 1, name: str = "topic", **configs: str) -> str:
        """Make a topic of a name of its own; "_" in the name of a setting stands for "."."""
        name = f"{name}-{uuid.uuid4().hex[:12]}"
        self.make(name, partitions, **configs)
        return name

    def make(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Make the topic `name`, and wait until it can be used."""
        wanted = {key.replace("_", "."): value for key, value in configs.items()}
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": wanted}
        self.admin.create_topics({name: options}, wait_for_metadata=True)

    def delete(self, name: str) -> None:
        self.admin.delete_topics([name])

    def add_partitions(self, name: str, total: int) -> None:
        self.admin.create_partitions({name: total})

    def trim(self, name: str, number: int, before: int) -> None:
        """Drop the records of a partition with offsets below `before`."""
        self.admin.delete_records({TopicPartition(name, number): before})

    def close(self) -> None:
        self.admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

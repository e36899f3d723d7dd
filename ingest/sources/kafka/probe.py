"""Whether a Kafka can be reached: for people setting one up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import SourceError
from .client import checked_bootstrap, checked_settings, codecs, connect, said

from kafka import KafkaConsumer  # isort: skip
from kafka.errors import KafkaError  # isort: skip

__all__ = ["codecs", "probe"]

TIMEOUT_S = 5.0


def probe(
    bootstrap: str | Sequence[str], settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the brokers report: the cluster, the brokers, the visible topics. Raises
    SourceError if none is reached."""
    bootstrap = checked_bootstrap(bootstrap)
    consumer, client = connect(
        KafkaConsumer, bootstrap, checked_settings(settings), TIMEOUT_S, group_id=None
    )
    try:
        topics = sorted(consumer.topics())
        cluster = client.cluster
        return {
            "cluster": cluster.cluster_id,
            "brokers": sorted(f"{b.host}:{b.port}" for b in cluster.brokers()),
            "topics": topics,
        }
    except KafkaError as error:
        raise SourceError(f"{bootstrap}: the brokers refused: {said(error)}") from None
    finally:
        consumer.close(autocommit=False, timeout_ms=0)

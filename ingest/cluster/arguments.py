"""What a cluster is given, checked before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ClusterError
from .engine import Engine
from .given import check_flags, check_interval

REFUSED = ("records", "device")  # of a pipeline's settings


def check(
    shards: int,
    settings: Mapping[str, Any],
    interval_s: float | None,
    kafka_settings: Mapping[str, Any] | None,
    directed: bool,
    predecessors: bool,
    names: bool,
) -> None:
    """Raise ClusterError for what no cluster can have."""
    if type(shards) is not int or shards < 1:
        raise ClusterError(f"shards is {shards!r}: expected a whole number, at least 1")
    check_interval(ClusterError, interval_s)
    check_flags(ClusterError, directed=directed, predecessors=predecessors, names=names)
    if kafka_settings is not None and not isinstance(kafka_settings, Mapping):
        raise ClusterError(
            f"kafka_settings is {kafka_settings!r}: expected a dictionary, as of KafkaSource"
        )
    if predecessors and not directed:
        raise ClusterError("predecessors: an undirected graph has them anyway: leave it out")
    if settings.get("records", "msgpack") != "msgpack":
        raise ClusterError("records: a sharded topic has what PartitionedSink writes: leave it out")
    if settings.get("late", "apply") != "apply" and (predecessors or not directed):
        raise ClusterError(
            "late: the two rows of an edge lie in two partitions, each with an event time of its "
            "own, so one might be late alone: leave it out, or keep each edge once"
        )
    if settings.get("window") is not None:
        raise ClusterError(
            "window: a shard sees the times of its own partitions alone, so each has its own "
            "bound: leave it out, and write expiries with PartitionedSink.expire"
        )
    if "device" in settings:
        raise ClusterError("device: say devices, one for all shards or one for each")


def check_places(checkpoint: str | os.PathLike[str], keep: str | None) -> None:
    """Raise ClusterError or CheckpointError if these can hold no checkpoints."""
    path = os.fspath(checkpoint) if isinstance(checkpoint, str | os.PathLike) else None
    if not isinstance(path, str):
        raise ClusterError(f"checkpoint is {checkpoint!r}: name a directory, as text or a Path")
    if not path:
        raise ClusterError("checkpoint is empty: name a directory, which is made")
    if os.path.exists(path) and not os.path.isdir(path):
        raise ClusterError(f"checkpoint: {path} is a file: name a directory, which is made")
    if keep is not None:
        if not isinstance(keep, str):
            raise ClusterError(f"keep is {keep!r}: name a directory or a URI, as text")
        if not keep:
            raise ClusterError("keep is empty: name a directory or a URI, or leave it out")
        if os.path.isfile(keep):
            raise ClusterError(f"keep: {keep} is a file: checkpoints are kept in a directory")
        from .storage import Storage

        Storage.of(keep)


def device_of(devices: str | Sequence[str] | None, number: int) -> str:
    """The device of a shard. Raises ClusterError if none is named."""
    if devices is None or isinstance(devices, str):
        return devices or "cpu"
    if not isinstance(devices, Sequence) or not all(isinstance(name, str) for name in devices):
        raise ClusterError(
            f"devices is {devices!r}: expected 'cpu', 'cuda' or 'cuda:N', or a list of them"
        )
    if not devices:
        raise ClusterError("devices is empty: name one, or leave it out")
    return devices[number % len(devices)]


def engine_of(engine: str | Engine) -> Engine:
    """The engine of that name. Raises ClusterError if there is none."""
    if isinstance(engine, Engine):
        return engine
    if engine == "local":
        from .local import LocalEngine

        return LocalEngine()
    if engine == "ray":
        from .on_ray import RayEngine

        return RayEngine()
    raise ClusterError(f"engine is {engine!r}: expected 'local' or 'ray'")

"""How a cluster ends: each shard with a last checkpoint, and told which of them have none."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ClusterError, EngineLost
from .engine import Handle, try_all

CLOSE_TIMEOUT_S = 300.0  # for the last checkpoints


def close_all(handles: Sequence[Handle]) -> ClusterError | None:
    """Let every shard take a last checkpoint, and end. Returns the error that names each shard of
    which none could be taken, and why; EngineLost if the engine is gone."""
    # Nobody waits long for the last checkpoint of a shard that is not there to take it.
    there = try_all(handles, "ping")
    errors = {h.number: e for h, e in zip(handles, there, strict=True) if e is not None}
    left = [handle for handle in handles if handle.number not in errors]
    found = try_all(left, "close", timeout_s=CLOSE_TIMEOUT_S)
    errors |= {h.number: e for h, e in zip(left, found, strict=True) if e is not None}
    for error in errors.values():
        if isinstance(error, EngineLost):
            return error
    whys = [(number, f"no last checkpoint: {_why(errors[number])}") for number in sorted(errors)]
    if len(whys) < 2:
        return ClusterError(whys[0][1], whys[0][0]) if whys else None
    return ClusterError("; ".join(f"shard {number}: {why}" for number, why in whys))


def _why(error: Exception) -> str:
    return error.why if isinstance(error, ClusterError) else f"{type(error).__name__}: {error}"

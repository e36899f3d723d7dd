"""What a cluster's status says, as people read it."""

from __future__ import annotations

from typing import Any

from .._console import format_value, table
from ..checkpoint import format_age

# epoch, saved: how long ago the newest one was closed, the newest checkpoint taken.
HEADER = ["shard", "state", "device", "edges", "operations", "lag", "epoch", "saved",
          "restarts"]  # fmt: skip


def readable(document: dict[str, Any]) -> dict[str, Any]:
    """The facts of the whole, for `show`. document: what the action "status" returns."""
    epoch = document["epoch"]
    counted = [shard["status"] for shard in document["shards"] if shard["status"] is not None]
    return {
        "state": document["state"],
        "shards": len(document["shards"]),
        "operations": sum(status["operations"] for status in counted),
        "edges": sum(status["edges"] for status in counted),
        "age of the newest epoch": None
        if epoch is None
        else age_of(document["time"], epoch["number"]),
        "restarts": document.get("restarts", 0),
        "up for": format_age(document["seconds"]),
    }


def show_shards(document: dict[str, Any]) -> None:
    """A line for each shard, and one for what goes wrong at one that runs all the same."""
    if document["shards"]:
        table(HEADER, [_line(document["time"], shard) for shard in document["shards"]])
    for shard in document["shards"]:
        own = shard["status"] or {}
        if shard["state"] == "running" and own.get("problem"):
            print(f"shard {shard['number']}: {own['problem']}")


def _line(now: int, shard: dict[str, Any]) -> list[str]:
    own = shard["status"] or {}
    counts = [format_value(own.get(name)) for name in ("edges", "operations", "lag")]
    ages = [age_of(now, own.get(name)) for name in ("epoch", "checkpoint_time")]
    return [str(shard["number"]), shard["state"], own.get("device") or "–", *counts, *ages,
            format_value(shard["restarts"])]  # fmt: skip


def age_of(now: int, then: int | None) -> str:
    """How long ago a moment was, as "3 s". now, then: ms since 1970; then: None or 0 for never."""
    return format_age(max(0, now - then) / 1000) if then else "–"

"""A shard in a process of its own, to be killed: `python killed_shard.py SPEC.json DIRECTORY`.

Every epoch that it closes is written to DIRECTORY/epoch-E-I.npz, whole or not at all, where I is
its incarnation. "ready" is printed when it runs, and it ends at the end of its standard input."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from ingest.cluster.shard import Shard
from ingest.cluster.spec import ShardSpec


def write(directory: Path, shard: Shard, epoch: int) -> None:
    part = shard.worker(epoch).part
    arrays = {"indptr": part.indptr, "indices": part.indices, "weights": part.weights}
    parts: dict[str, Any] = {f"out_{name}": array for name, array in arrays.items()}
    if part.in_part is not None:
        other = part.in_part
        arrays = {"indptr": other.indptr, "indices": other.indices, "weights": other.weights}
        parts |= {f"in_{name}": array for name, array in arrays.items()}
    incarnation = shard.status().incarnation
    temporary = directory / f".{epoch}-{incarnation}.npz"
    np.savez(temporary, **parts)
    os.replace(temporary, directory / f"epoch-{epoch}-{incarnation}.npz")


def main() -> None:
    spec = ShardSpec(**json.loads(Path(sys.argv[1]).read_text()))
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    with Shard(spec) as shard:
        shard.expect(0, or_later=True)
        shard.start()
        epoch = 0
        while shard.status().state == "starting":
            time.sleep(0.001)
        print("ready", flush=True)
        while not ended.is_set():
            assert shard.status().state == "running", shard.status().problem
            closed = shard.closed_from(epoch, 0.05)
            if closed is not None:
                epoch = closed.epoch + 1
                shard.expect(epoch, or_later=True)
                write(Path(sys.argv[2]), shard, closed.epoch)


if __name__ == "__main__":
    main()

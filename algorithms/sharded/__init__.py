"""Algorithms on a graph that is spread over shards, each of which holds the rows that it owns.

`algorithms` takes a snapshot of such a graph, `ShardedSnapshot`, like a Snapshot. Programs run at
the shards in supersteps, which exchange only what others need, packed; results are those of one
device. What has no program here runs on `s.gather()`, if that fits on one host.

snapshot.py   ShardedSnapshot, the public functions over it, and number_names
parquet.py    files of a sharded snapshot

runtime/      runs programs:
  types.py      Part, Messages, Steps, Workers; `run`
  worker.py     Worker: holds a shard's part and runs programs on it; state.py is what they see
  local.py      LocalWorkers, in threads of one process, and a snapshot split over them
  rows.py       rows packed to be sent, and joined
programs/     the programs, by name: PROGRAMS
  pagerank.py bfs.py components.py cores.py triangles.py diversity.py gathering.py naming.py
  views.py      what they read: transposed rows, the simple view, the halo
  oriented.py   the rows that are shipped
  cores_cpu.py, cuda.py, sharded.cu   kernels besides those of one device

Oracle: the one-device programs, on the same graph (tests/algorithms/sharded/test_programs.py).

Source of the model: Malewicz et al., "Pregel: a system for large-scale graph processing", SIGMOD
2010; each program names its own.
"""

from __future__ import annotations

from .parquet import Manifest, read_manifest, read_parquet
from .programs import PROGRAMS
from .runtime.local import LocalWorkers, split
from .runtime.types import Control, Facts, Message, Messages, Part, ProgramPreempted, Workers
from .runtime.worker import Worker
from .snapshot import ShardedSnapshot, facts_of, number_names

__all__ = [
    "PROGRAMS",
    "Control",
    "Facts",
    "LocalWorkers",
    "Manifest",
    "Message",
    "Messages",
    "Part",
    "ProgramPreempted",
    "ShardedSnapshot",
    "Worker",
    "Workers",
    "facts_of",
    "number_names",
    "read_manifest",
    "read_parquet",
    "split",
]

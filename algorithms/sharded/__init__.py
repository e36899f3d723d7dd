"""Algorithms on a graph that is spread over shards, each of which holds the rows that it owns.

A snapshot of such a graph, `ShardedSnapshot`, goes where a Snapshot goes: `algorithms.pagerank(s)`
hands over to it. Programs run at the shards in supersteps, which exchange only what the others
need, packed; results are those of one device. What has no program here is computed on
`s.gather()`, if that fits one host.

snapshot.py   ShardedSnapshot, and number_names
drivers.py    the public functions' arguments and results
parquet.py    files of a sharded snapshot

runtime/      what runs programs:
  types.py      what all agree on: Part, Messages, Steps, Workers; `run`
  worker.py     Worker: at its shard, holds a part and runs programs; state.py is what they see
  local.py      LocalWorkers, in threads of one process, and a snapshot split over them
  messages.py   messages brought to another device, or to the host; rows.py packs rows
programs/     the programs, by name: PROGRAMS
  pagerank.py bfs.py components.py cores.py triangles.py diversity.py gathering.py naming.py
  views.py      what they read: transposed rows, the simple view, whose values are needed where
  oriented.py   the rows that are shipped
  cores_cpu.py, cuda.py, sharded.cu   what they run on either device beside its own programs

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

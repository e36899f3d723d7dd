"""Algorithms on a graph that is spread over shards, each of which holds the rows that it owns.

A snapshot of such a graph, `ShardedSnapshot`, goes where a Snapshot goes: `algorithms.pagerank(s)`
hands over to it. Programs run at the shards in supersteps, which exchange only what the others
need, packed; results are those of one device. What has no program here is computed on
`s.gather()`, if that fits one host.

types.py        what all agree on: Part, Messages, Steps, Workers
worker.py       Worker: at its shard, holds a part and runs programs; held.py is what programs see
local.py        LocalWorkers, in threads of one process; splitting.py splits a snapshot over them
messages.py     messages brought to another device, or to the host
running.py      runs a program on all workers
snapshot.py     ShardedSnapshot, and number_names
drivers.py      the public functions' arguments and results
programs.py     PROGRAMS, by name:
  pagerank.py bfs.py components.py cores.py triangles.py diversity.py gathering.py naming.py
  edges_into.py
  cuda.py, sharded.cu   what they run on a device beside the one-device programs
views.py        what they read: turned rows, the simple view, and whose values are needed where
upper.py        the rows that are shipped; rows.py packs rows
parquet.py      files of a sharded snapshot

Source of the model: Malewicz et al., "Pregel: a system for large-scale graph processing", SIGMOD
2010; each program names its own.
"""

from __future__ import annotations

from .local import LocalWorkers
from .parquet import Manifest, read_manifest, read_parquet
from .programs import PROGRAMS
from .snapshot import ShardedSnapshot, facts_of, number_names
from .splitting import split
from .types import Facts, Message, Messages, Part, Workers
from .worker import Worker

__all__ = [
    "PROGRAMS",
    "Facts",
    "LocalWorkers",
    "Manifest",
    "Message",
    "Messages",
    "Part",
    "ShardedSnapshot",
    "Worker",
    "Workers",
    "facts_of",
    "number_names",
    "read_manifest",
    "read_parquet",
    "split",
]

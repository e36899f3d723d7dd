"""What a cluster costs: seconds, bytes and memory, from a few constants measured on one shard.

`counts` says what programs exchange; here that becomes time. A program's seconds are

    (entries · passes · entry_s + shards · rows · row_s
        + values · value_s + dealt · deal_s + shipped · ship_s)
        / devices at work                                                    work, on all shards
    + supersteps · (superstep_s + shards · turn_s)                           waiting
    + bytes / (link_bytes_s · devices at work)                               what is sent

`predicted` measures the constants and sets predictions beside measurements.

Assumptions, beside those of `counts`:
6. Work is even: each shard has entries / shards. No shard waits long for another.
7. Every shard has arrays over all rows of the graph, and passes over them as one shard does: this
   part is not divided. It is told from the rest by adding rows without entries.
8. A value that is exchanged is gathered once and scattered once, in random places, whatever it is
   for. An entry of a shipped row is packed, put together with others, and ranked as own ones are:
   nothing is left out before that, though some may be. Rows are dealt among their owners by a
   sort, which one shard alone is spared: those of a border once, and whatever a search or a round
   of hooking meets.
9. In threads of one process the Python of a superstep runs one shard after another (`turn_s`). On
   Ray it does not, and a superstep costs its calls (`superstep_s`).
10. Threads on the cores of one host are one device: one shard uses all cores already.
11. Refining core numbers passes more often over the entries the more shards there are: as often as
   two shards do, times (1 + log2 S) / 2.
12. Costs an entry do not depend on the size of the graph. Caches say otherwise: what is calibrated
   on a graph that fits them is too cheap for one that does not.
13. A shard that comes back loads its checkpoint, then replays what came since, as fast as it
   applies updates, and no slower because the others go on.
14. An epoch that is asked for copies each shard's rows, once. Updates of the shard wait meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import counts
from .counts import Counts, Profile, Refining, Shape

SNAPSHOT_ENTRY, SNAPSHOT_ROW = 16, 8  # bytes: id, weight, time; where a row begins
SNAPSHOTS = 2  # held at most
CHECKPOINT_ENTRY, CHECKPOINTS = 20, 2
LOG_OPERATION = 24  # bytes of an update in a record of columns
MOST_ROWS = MOST_EDGES = 2**31 - 1  # of a graph; of the rows that a shard looks for triangles in


@dataclass(frozen=True)
class Cost:
    """Of one program with one shard."""

    entry_s: float
    row_s: float


@dataclass(frozen=True)
class Machine:
    """Where shards run, and what was measured there.

    devices       shards that compute at the same time
    superstep_s   of one that carries nothing, but for the shards' own Python
    turn_s        of that, a shard
    value_s       to gather and scatter a value
    deal_s        to deal a row to its owner
    ship_s        to pack and take in an entry of a shipped row
    link_bytes_s  from a device to others; between hosts, the network's
    store_entry   bytes of the store an entry
    update_s      a shard's, an update from the log
    load_entry_s  an entry of a checkpoint
    notice_s      until a dead shard is started again
    marker_s      of an epoch, but for its copy
    copy_bytes_s  a snapshot's, written
    log_bytes_s   the log's, of all shards
    costs         by program"""

    devices: int
    superstep_s: float
    turn_s: float
    value_s: float
    deal_s: float
    ship_s: float
    link_bytes_s: float
    costs: Mapping[str, Cost]
    store_entry: float = 35.0
    update_s: float = 6e-7
    load_entry_s: float = 6e-7
    notice_s: float = 0.1
    marker_s: float = 4e-3
    copy_bytes_s: float = 4e9
    log_bytes_s: float = 1e9


@dataclass(frozen=True)
class Graph:
    """A graph to predict for."""

    profile: Profile
    rows: float  # 1 + the largest id
    eccentricity: int = 6  # of the source of a BFS

    @property
    def entries(self) -> float:
        return self.profile.entries


# Programs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    counts: Counts
    seconds: float


def predicted(
    program: str, machine: Machine, graph: Graph, shards: int, *, rounds: int, refining: Refining
) -> Prediction:
    """Of one run of a program. rounds: of PageRank. refining: of core numbers, with two shards."""
    shape = counts.expected(graph.profile, shards)
    of = {
        "degrees": lambda: counts.degrees(shape),
        "bfs": lambda: counts.bfs(shape, graph.eccentricity),
        "components": lambda: counts.components(shape),
        "pagerank": lambda: counts.pagerank(shape, rounds),
        "cores": lambda: counts.cores(shape, refining),
        "triangles": lambda: counts.triangles(shape),
    }[program]()
    passes = refining.passes_of(shards) if program == "cores" else 1.0
    return Prediction(of, _seconds(machine, program, graph, shape, of, passes))


def _seconds(
    machine: Machine, program: str, graph: Graph, shape: Shape, of: Counts, passes: float
) -> float:
    cost, at_work = machine.costs[program], min(shape.shards, machine.devices)
    shipped = shape.shipped if program == "triangles" else 0.0
    values = (of.sent - counts.ID * shipped) / counts.SHARE
    work = (
        graph.entries * passes * cost.entry_s
        + shape.shards * graph.rows * cost.row_s
        + values * machine.value_s
        + _dealt(program, graph, shape) * machine.deal_s
        + shipped * machine.ship_s
    )
    waiting = of.supersteps * (machine.superstep_s + shape.shards * machine.turn_s)
    return work / at_work + waiting + of.sent / (machine.link_bytes_s * at_work)


def _dealt(program: str, graph: Graph, shape: Shape) -> float:
    """Rows that all shards deal among their owners (assumption 8)."""
    if shape.shards == 1 or program == "degrees":
        return 0.0
    vertices = float(graph.profile.vertices.sum())
    met = {"bfs": vertices, "components": vertices + shape.pairs, "triangles": shape.upper}
    return shape.pairs + met.get(program, 0.0)


# Memory, bytes of one shard --------------------------------------------------------------------


def memory(machine: Machine, graph: Graph, shards: int) -> dict[str, float]:
    """What lies there all the time, and what each program has beside it at its peak."""
    shape = counts.expected(graph.profile, shards)
    n, m = graph.rows, graph.entries / shards
    pairs, looked = shape.pairs / shards, looked_through(shape, graph)
    around = 4 * n + 4 * n / shards + 2 * counts.ID * pairs  # owners, own rows, borders
    return {
        "store": machine.store_entry * m,
        "snapshots": SNAPSHOTS * (SNAPSHOT_ENTRY * m + SNAPSHOT_ROW * n),
        "pagerank": around + 44 * n + 4 * m + 2 * counts.SHARE * pairs,
        "components": around + 8 * n + 24 * (n / shards + pairs),
        "cores": around + 58 * n + 8 * m,
        "triangles": around + 60 * n + 6 * m + 20 * looked,
        "bfs": around + 8 * n + 2 * m,
        "degrees": around + 8 * n / shards,
    }


def looked_through(shape: Shape, graph: Graph) -> float:
    """Entries in which a shard counts triangles: at most MOST_EDGES."""
    return float((shape.shipped + graph.entries / 2) / shape.shards)


# The stream ------------------------------------------------------------------------------------


def updates_per_s(machine: Machine, shards: int) -> float:
    """Of all shards together: what they apply, or what the log brings."""
    applied = min(shards, machine.devices) / machine.update_s
    return min(applied, machine.log_bytes_s / LOG_OPERATION)


def epoch_s(machine: Machine, graph: Graph, shards: int) -> float:
    """From the markers to the last shard's snapshot."""
    copied = SNAPSHOT_ENTRY * graph.entries / shards + SNAPSHOT_ROW * graph.rows
    turns = shards / min(shards, machine.devices)
    return float(turns * (machine.marker_s + copied / machine.copy_bytes_s))


def epochs_cost(machine: Machine, graph: Graph, shards: int, interval_s: float) -> float:
    """The part of the updates' rate that epochs take: their copies (assumption 14)."""
    turns = shards / min(shards, machine.devices)
    return min(1.0, (epoch_s(machine, graph, shards) - turns * machine.marker_s) / interval_s)


def recovery_s(machine: Machine, graph: Graph, shards: int, since_s: float) -> float:
    """From a shard's death to its next answer. since_s: seconds of stream after its checkpoint, as
    fast as the log brings it; 0 at rest."""
    load = machine.load_entry_s * graph.entries / shards
    return float(machine.notice_s + load + since_s)


def kept_bytes(graph: Graph) -> float:
    """On the storage that outlives disks: two checkpoints of each shard."""
    return CHECKPOINTS * CHECKPOINT_ENTRY * graph.entries

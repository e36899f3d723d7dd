"""A plan for 10^11 edges on 64 hosts, by the cost model: not measured, since nobody has them here.

Assumptions, beside those of `counts` and `model`:
15. The graph has the degrees of an RMAT graph of 50 edges a row, so many times as its size asks:
    no vertex has more neighbours than the small graph's largest.
16. A host's cores are as fast as the two that were measured, and sixteen times as many do as much.
    A GPU is one H200: seconds an entry are all of those that one shard of RMAT 24 takes, which has
    5.2·10^8 entries (docs/performance); rows are passed over at 2 TB/s.
17. 100 Gb/s between hosts, of which Ray's object store passes on 2 GB/s a host, of one copy each
    way; eight GPUs of a host share them. A superstep takes 5 ms among 64 shards, 10 among 512.
18. The log brings 10 GB/s: as many brokers as that takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..report import Report
from . import counts, model
from .counts import SHARE, Profile, Refining
from .model import Cost, Graph, Machine

HOSTS = 64
EDGES, ROWS = 1e11, 2e9
CORES = 16  # pairs of cores in a host
DEAL_S = 2e-8  # of two cores
NETWORK_BYTES_S = 2e9  # of a host
SWEEPS = 20
REFINING = Refining(41, 6.8, 10.0)  # as counted with two shards of RMAT 17
SINCE_S, EPOCH_INTERVAL_S = 60.0, 60.0

# One pair of cores: ns an entry and a row, RMAT 17; PageRank of 20 sweeps.
_TWO_CORES = {
    "degrees": (0.0, 25.0), "bfs": (2.6, 25.0), "components": (3.6, 43.0),
    "pagerank": (29.0, 62.0), "cores": (4.2, 57.0), "triangles": (42.0, 81.0),
}  # fmt: skip
_H200 = {
    "degrees": (0.0, 0.05), "bfs": (0.06, 0.05), "components": (0.08, 0.05),
    "pagerank": (0.32, 0.6), "cores": (0.12, 0.1), "triangles": (0.22, 0.2),
}  # fmt: skip


def _costs(of: dict[str, tuple[float, float]], faster: float) -> dict[str, Cost]:
    return {p: Cost(e * 1e-9 / faster, r * 1e-9 / faster) for p, (e, r) in of.items()}


@dataclass(frozen=True)
class Plan:
    """shards: of all hosts. memory_bytes: that a shard can have."""

    name: str
    shards: int
    memory_bytes: float
    machine: Machine


PLANS = (
    Plan(
        "a shard a host, 32 cores and 768 GB", HOSTS, 768e9,
        Machine(
            devices=HOSTS, superstep_s=5e-3, turn_s=0.0, value_s=4.1e-9 / CORES,
            deal_s=DEAL_S / CORES, ship_s=23e-9 / CORES, link_bytes_s=NETWORK_BYTES_S,
            costs=_costs(_TWO_CORES, CORES),
            update_s=5e-7, load_entry_s=1e-8, notice_s=2.0, copy_bytes_s=5e10, log_bytes_s=1e10,
        ),
    ),
    Plan(
        "a shard a GPU, 8 H200 a host", 8 * HOSTS, 141e9,
        Machine(
            devices=8 * HOSTS, superstep_s=1e-2, turn_s=0.0, value_s=1e-11, deal_s=1e-10,
            ship_s=1.5e-9,
            link_bytes_s=NETWORK_BYTES_S / 8, costs=_costs(_H200, 1.0),
            store_entry=47.0, update_s=1.7e-8, load_entry_s=1e-8, notice_s=2.0,
            copy_bytes_s=2e12, log_bytes_s=1e10,
        ),
    ),
)  # fmt: skip


def planned(profile: Profile, plan: Plan) -> list[dict[str, Any]]:
    """A row for each thing that is asked of the graph. profile: of a small one (assumption 15)."""
    graph = Graph(profile.times(2 * EDGES / profile.entries), ROWS)
    machine, shards = plan.machine, plan.shards
    memory = model.memory(machine, graph, shards)
    stays = memory["store"] + memory["snapshots"]
    rows = [_row(plan, "store and snapshots", stays, None, None)]
    for program in machine.costs:
        told = model.predicted(program, machine, graph, shards, rounds=SWEEPS, refining=REFINING)
        used = stays + memory[program]
        rows.append(_row(plan, program, used, told.counts.sent / HOSTS, told.seconds))
    rows += [
        _row(plan, "an epoch", None, None, model.epoch_s(machine, graph, shards)),
        _row(plan, "recovery", None, None, model.recovery_s(machine, graph, shards, SINCE_S)),
        _row(plan, "ranks brought to one host", None, None, SHARE * ROWS / NETWORK_BYTES_S),
    ]
    return rows


def _row(
    plan: Plan, what: str, memory: float | None, sent: float | None, seconds: float | None
) -> dict[str, Any]:
    """memory: of a shard; sent: of a host."""
    return {
        "plan": plan.name,
        "what": what,
        "GB a shard": None if memory is None else memory / 1e9,
        "of what it has": None if memory is None else memory / plan.memory_bytes,
        "GB sent a host": None if sent is None else sent / 1e9,
        "s": seconds,
    }


def report(name: str, profile: Profile) -> Report:
    """Both plans, and what bounds them."""
    made = Report(name, f"a plan for {EDGES:.0e} edges, {ROWS:.0e} vertices, {HOSTS} hosts")
    graph = Graph(profile.times(2 * EDGES / profile.entries), ROWS)
    for plan in PLANS:
        for row in planned(profile, plan):
            made.add(row)
        shape = counts.expected(graph.profile, plan.shards)
        looked = model.looked_through(shape, graph) / model.MOST_EDGES
        rate = model.updates_per_s(plan.machine, plan.shards) / 2  # both directions
        cost = model.epochs_cost(plan.machine, graph, plan.shards, EPOCH_INTERVAL_S)
        made.notes.append(
            f"{plan.name}: {rate / 1e6:,.0f} M edges/s; an epoch a minute takes {cost:.1%} of it; "
            f"triangles look through {looked:.2f} times the {model.MOST_EDGES:,} entries that a "
            f"shard takes, rows are {ROWS / model.MOST_ROWS:.2f} times what programs take; "
            f"checkpoints are {model.kept_bytes(graph) / 1e12:.3g} TB."
        )
    return made

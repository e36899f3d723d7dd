"""`python -m benchmarks NAME ... [--quick] [--only STORE,...] [--json FILE] [--budget SECONDS]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from . import peers
from .gpu import device
from .report import Report, Setting, write_json
from .stores import warm_up

# Each runs the programs that the machine can: those for the CPU, for one device, for several.
DIVERSITY = (
    "diversity-table2",
    "diversity-table3",
    "diversity-table4",
    "diversity-table5",
    "diversity-figure8",
    "diversity-figure9",
    "diversity-figure10",
)
# In the order `all` runs them.
EXPERIMENTS = (
    "startup",
    "updates",
    "queries",
    "csr",
    "latency",
    "live-queries",
    "memory",
    "expansion",
    "redundancy",
    "checkpoint",
    "kafka",
    "traversal",
    "triangles",
    "truss",
    "kcore-table4",
    "butterflies",
    "tracker",
    *DIVERSITY,
    "bicliques",
)
# On a CUDA device, in the order `gpu` runs them. Figures are the paper's.
GPU_EXPERIMENTS = (
    "gpu-updates",
    "figure8",
    "figure9",
    "figure10",
    "figure11",
    "figure12",
    "figure13",
    "figure14",
    "figure16",
    "gpu-queries",
    "gpu-vertices",
    "gpu-memory",
    "gpu-pipeline",
    "gpu-traversal",
    "gpu-triangles",
    "gpu-truss",
    "kcore-table2",
    "kcore-table3",
    "kcore-table5",
    "gpu-tracker",
    *DIVERSITY,
    "gpu-bicliques",
    "biclique-figure7",
    "biclique-figure8",
    "biclique-figure9",
    "biclique-figure10",
    "biclique-table3",
    "biclique-table4",
    "biclique-table5",
)
GPU_BUDGET_S = 150.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = list(dict.fromkeys([*EXPERIMENTS, "all", *GPU_EXPERIMENTS, "gpu"]))
    parser.add_argument("names", nargs="+", metavar="NAME", choices=known, help=", ".join(known))
    parser.add_argument("--quick", action="store_true", help="small graphs: under a minute in all")
    parser.add_argument("--only", default="", help="stores to run, by name, with commas between")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    late = "a GPU experiment begins nothing new after that many seconds"
    parser.add_argument("--budget", type=float, default=GPU_BUDGET_S, metavar="SECONDS", help=late)
    given = parser.parse_args(arguments)

    names = list(_chosen(given.names))
    if any(name in EXPERIMENTS for name in names):
        _prepare_cpu()
    missing = device.why_none()
    folder = given.json.parent if given.json else Path("bench-results")
    only = frozenset(filter(None, given.only.split(",")))
    reports: list[Report] = []
    for name in names:
        on_device = name in GPU_EXPERIMENTS and not (missing and name in EXPERIMENTS)
        if on_device and missing:
            print(f"{name}: skipped, {missing}", file=sys.stderr)
            continue
        budget = given.budget if on_device else float("inf")
        setting = Setting(given.quick, only, folder, budget)
        reports += _run(name, setting)
        if given.json:  # after each, so that what was found outlives a later failure
            write_json(given.json, reports, given.quick)
    return 0


def _chosen(names: list[str]) -> Iterator[str]:
    groups = {"all": EXPERIMENTS, "gpu": GPU_EXPERIMENTS}
    for name in names:
        yield from groups.get(name, (name,))


def _prepare_cpu() -> None:
    missing = {peer.name for peer in peers.ALL} - {peer.name for peer in peers.available()}
    if missing:
        print(f"not installed, left out: {', '.join(sorted(missing))}", file=sys.stderr)
    warm_up()


def _run(name: str, setting: Setting) -> list[Report]:
    start = time.perf_counter()
    module = importlib.import_module(f".experiments.{name.replace('-', '_')}", __package__)
    found = module.run(setting)
    reports = found if isinstance(found, list) else [found]
    for report in reports:
        print(report.text())
    print(f"({name}: {time.perf_counter() - start:.0f} s)\n", file=sys.stderr, flush=True)
    return reports


if __name__ == "__main__":
    sys.exit(main())
